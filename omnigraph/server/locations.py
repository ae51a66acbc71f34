"""Hide where graphs are stored: reports, jobs and logs name a graph by its id or its public URI instead.

This module must load quickly, because the supervisor also imports it.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from .settings import GraphLocation


def location_spellings(uri: str) -> tuple[str, ...]:
    """Return the ways in which messages may spell a location, longest first.

    >>> location_spellings("s3://bucket/people?region=eu")
    ('s3://bucket/people?region=eu', 's3://bucket/people', 'bucket/people')
    """
    address = uri.partition("?")[0].rstrip("/")
    spellings = {uri, address}
    scheme, separator, path = address.partition("://")
    if separator and scheme != "file":
        spellings.add(path)
    else:
        folder = Path(path or address)
        spellings |= {path, str(folder.absolute()), str(folder.resolve()), f"file://{folder.absolute()}"}
    # A relative path without folders, such as `g`, reveals nothing and could be part of any word.
    recognizable = (spelling for spelling in spellings if "/" in spelling.strip("/"))
    return tuple(sorted(recognizable, key=lambda spelling: (-len(spelling), spelling)))


def hide_locations(value: Any, roots: Iterable[str], shown: str) -> Any:
    """Return a report in which the storage location of a graph is replaced by the location that clients see."""
    if isinstance(value, dict):
        return {name: hide_locations(member, roots, shown) for name, member in value.items()}
    if isinstance(value, list | tuple):
        return [hide_locations(item, roots, shown) for item in value]
    if isinstance(value, str):
        for root in roots:
            value = value.replace(root, shown)
    return value


def name_graphs(text: str, locations: Iterable[GraphLocation]) -> str:
    """Return a text for the log, in which the ids of graphs replace their locations.

    >>> name_graphs("no graph at 's3://bucket/people'", [GraphLocation("people", "s3://bucket/people")])
    "no graph at 'people'"
    """
    for location in locations:
        is_public = "/" not in location.uri  # a name without folders reveals nothing
        shown = location.uri if is_public else location.graph_id
        text = hide_locations(text, location_spellings(location.uri), shown)
    return text
