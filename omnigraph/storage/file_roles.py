"""Parse the path of a file to determine its table or manifest, its kind and its version.

This module only parses names and never accesses the store.
"""

from collections.abc import Iterator, Mapping

from omnigraph.storage import layout

from .object_backend import ListedObject

TABLE_ROOTS = ("nodes", "edges")
MANIFEST_ROOTS = (layout.MANIFEST, layout.BRANCHES)

_MAX_VERSION = (1 << 64) - 1


def owning_directory(file_name: str) -> str:
    """Return the table or manifest that a file belongs to, or the top-level directory of any other object.

    >>> owning_directory("nodes/40d7-01J0/data/x.lance")
    'nodes/40d7-01J0'
    >>> owning_directory("__manifest/data/x.lance")
    '__manifest'
    >>> owning_directory("_commits/40d7-01J0")
    '_commits'
    """
    top_directory, *path_parts = file_name.split("/")
    return (
        f"{top_directory}/{path_parts[0]}"
        if top_directory in (*TABLE_ROOTS, layout.BRANCHES) and path_parts
        else top_directory
    )


def subdirectory_of(file_name: str) -> str:
    """Return the directory within a table or manifest that contains a file, such as `data` or `_versions`."""
    return file_name.removeprefix(owning_directory(file_name)).lstrip("/").partition("/")[0]


def attached_version_number(file_name: str) -> int | None:
    """Return the number of an attached version from its file name, or None for any other file.

    >>> attached_version_number("t/_versions/18446744073709551614.manifest")
    1
    >>> attached_version_number("t/_versions/d7.manifest")
    """
    stem = file_name.rpartition("/")[2].removesuffix(".manifest")
    return _MAX_VERSION - int(stem) if stem.isdecimal() and file_name.endswith(".manifest") else None


def attached_versions_of(listed_names: Mapping[str, ListedObject] | Iterator[str], table_directory: str) -> list[int]:
    """Return the numbers of all attached versions of a table that a listing contains."""
    prefix = f"{table_directory}/_versions/"
    numbers = (attached_version_number(file_name) for file_name in listed_names if file_name.startswith(prefix))
    return sorted(number for number in numbers if number is not None)
