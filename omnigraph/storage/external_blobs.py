"""External blobs: check whether a graph may read a URI, and read its bytes.

A URI is allowed if it is below an allowed base. URIs are decoded and compared one path component at a time. URIs with
`..`, encoded separators, credentials, queries or unknown schemes are always rejected, as are symbolic links to
locations outside a base. The bytes are copied block by block, so a graph never references an external object. A file
that changes while it is being copied is rejected.
"""

import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from urllib.parse import quote, unquote, urlsplit

from omnigraph.errors import ExternalBlobPolicyError, ExternalBlobSourceError, InputError, StorageError
from omnigraph.errors.redact import redact_uri
from omnigraph.records.frozen import record

from .checksums import CHECKSUM_BLOCK_BYTES
from .root import GraphRoot, s3_options

_SCHEMES = ("file", "s3")
_MAX_URI_BYTES = 64 << 10
_OTHER_FORMS_HINT = "pass the bytes, a pathlib.Path or base64 text such as 'base64:aGk='"


@record
class BlobLocation:
    """A parsed URI: its scheme, its bucket (empty for files), and its decoded path components."""

    scheme: str
    bucket: str
    parts: tuple[str, ...]

    def contains(self, other: "BlobLocation") -> bool:
        """Return whether another location is equal to or below this location.

        >>> base = parse_location("s3://lake/covers")
        >>> [base.contains(parse_location(f"s3://lake/{key}")) for key in ("covers/a.png", "covers2/a.png")]
        [True, False]
        """
        same_store = (self.scheme, self.bucket) == (other.scheme, other.bucket)
        return same_store and other.parts[: len(self.parts)] == self.parts

    @property
    def uri(self) -> str:
        """The URI of the location, with encoded path components."""
        return f"{self.scheme}://{'/'.join([self.bucket, *(quote(part, safe='') for part in self.parts)])}"

    @property
    def path(self) -> str:
        """The absolute path of a file."""
        return f"/{'/'.join(self.parts)}"


def parse_location(uri: str, *, is_base: bool = False) -> BlobLocation:
    """Parse a URI; raise `ExternalBlobPolicyError` if it is malformed or could disguise the actual location.

    If `is_base` is true, the URI may also specify a whole bucket.
    """
    problem = _find_uri_problem(uri, is_base=is_base)
    if problem is not None:
        raise ExternalBlobPolicyError(uri=redact_uri(uri[:200]), reason=problem, hint=_OTHER_FORMS_HINT)
    uri_parts = urlsplit(uri)
    bucket = "" if uri_parts.scheme == "file" else uri_parts.netloc
    return BlobLocation(uri_parts.scheme, bucket, tuple(unquote(part) for part in _raw_parts(uri_parts.path)))


def parse_allowed_bases(uris: Iterable[str]) -> tuple[BlobLocation, ...]:
    """Parse the bases below which external blobs are allowed; raise `InputError` for a malformed base.

    >>> parse_allowed_bases(["s3://lake/covers/"])
    (BlobLocation(scheme='s3', bucket='lake', parts=('covers',)),)
    """
    if isinstance(uris, str):
        raise InputError("external_blobs must be a list of URIs, not a string", reason="expected a list")
    try:
        return tuple(parse_location(str(uri), is_base=True) for uri in uris)
    except ExternalBlobPolicyError as error:
        raise InputError(
            f"'{error.uri}' cannot be used as an allowed location for external blobs: {error.reason}",
            reason="malformed base",
            hint="use URIs such as s3://bucket/prefix or file:///data",
        ) from None


def require_allowed(uri: str, allowed_bases: Iterable[BlobLocation]) -> BlobLocation:
    """Parse a URI into a location; raise `ExternalBlobPolicyError` unless it is below an allowed base."""
    location, bases = parse_location(uri), tuple(allowed_bases)
    containing_bases = [base for base in bases if base.contains(location)]
    if not containing_bases:
        reason = "the URI is not under an allowed location" if bases else "this graph does not allow external blobs"
        raise ExternalBlobPolicyError(uri=redact_uri(uri), reason=reason, hint=_hint_for(uri))
    if location.scheme == "file" and not _stays_inside(location, containing_bases):
        raise ExternalBlobPolicyError(uri=uri, reason="a symbolic link points outside the allowed location")
    return location


def read_external(uri: str, location: BlobLocation, s3_settings: Mapping[str, str]) -> Iterator[bytes]:
    """Yield the bytes at an allowed location; raise `ExternalBlobSourceError` if they cannot be read.

    `s3_settings` take precedence over the `AWS_*` variables.
    """
    try:
        yield from _read_file(location) if location.scheme == "file" else _read_object(location, s3_settings)
    except (OSError, StorageError, InputError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error).partition("\n")[0]
        raise ExternalBlobSourceError(uri=redact_uri(uri), reason=reason) from error


def _read_file(location: BlobLocation) -> Iterator[bytes]:
    # With O_NONBLOCK, opening a named pipe does not wait for a writer.
    descriptor = os.open(location.path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(descriptor, "rb") as file:  # noqa: PTH123 - an open descriptor
        before = os.fstat(descriptor)
        if not stat.S_ISREG(before.st_mode):
            raise OSError(0, "not a regular file")
        read_bytes = 0
        for block in iter(lambda: file.read(CHECKSUM_BLOCK_BYTES), b""):
            read_bytes += len(block)
            yield block
        after = os.fstat(descriptor)
        if read_bytes != before.st_size or after.st_mtime_ns != before.st_mtime_ns:
            raise OSError(0, "the file changed while it was being read")


def _read_object(location: BlobLocation, s3_settings: Mapping[str, str]) -> Iterator[bytes]:
    from .s3 import S3Backend

    *folders, name = location.parts
    folder = GraphRoot("s3", "/".join([location.bucket, *folders]), s3_options(os.environ) | dict(s3_settings))
    blocks = S3Backend.connect(folder).read_blocks(name)
    if blocks is None:
        raise OSError(0, "the object does not exist")
    yield from blocks


def _find_uri_problem(uri: str, *, is_base: bool) -> str | None:
    """Return the reason why a URI can never be allowed, or None if its form is acceptable."""
    scheme, separator, _ = uri.partition("://")
    if not separator or scheme not in _SCHEMES or len(uri.encode(errors="replace")) > _MAX_URI_BYTES:
        schemes = " or ".join(f"{name}://" for name in _SCHEMES)
        return f"expected a URI of at most {_MAX_URI_BYTES} bytes that begins with {schemes}"
    if any(ord(character) < 0x20 or character in "\\?#\x7f" for character in uri):
        return "the URI contains a control character, '\\', '?' or '#'; encode such characters"
    uri_parts = urlsplit(uri)
    if scheme == "file" and uri_parts.netloc:
        return "a file URI must not contain a host; use the form file:///path"
    if scheme == "s3" and (not uri_parts.netloc or set(uri_parts.netloc) & set("@:%")):
        return "expected a bucket name without credentials or a port"
    raw_parts = _raw_parts(uri_parts.path)
    if not raw_parts and not (is_base and scheme == "s3"):
        return "the URI has no object name" if scheme == "s3" else "the URI is the root of the file system"
    return _find_path_problem(raw_parts)


def _find_path_problem(raw_parts: list[str]) -> str | None:
    decoded_parts = [unquote(part, errors="surrogateescape") for part in raw_parts]
    if any(part in ("", ".", "..") for part in decoded_parts):
        return "the path contains an empty component, '.' or '..'"
    if any(set(part) & set("/\\\x00") or not part.isprintable() for part in decoded_parts):
        return "the path contains an encoded separator or an unprintable character"
    return None


def _raw_parts(path: str) -> list[str]:
    stripped_path = path.removeprefix("/").removesuffix("/")
    return stripped_path.split("/") if stripped_path else []


def _stays_inside(location: BlobLocation, bases: Iterable[BlobLocation]) -> bool:
    real_path = Path(os.path.realpath(location.path))
    return any(real_path.is_relative_to(os.path.realpath(base.path)) for base in bases)


def _hint_for(uri: str) -> str:
    base = uri[:200].rpartition("/")[0]
    return f"open the graph with external_blobs=['{base}'] or --external-blobs, or set OMNIGRAPH_EXTERNAL_BLOBS"
