"""Where a graph lives: a directory or a prefix in a bucket.

Owns the reading of URIs and of the `AWS_*` variables. Everything inside a root is named relative
to it, so that a quiet root can be moved or copied. Secrets never show in `repr` or in an error.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote, urlsplit

from omnigraph.errors import InputError
from omnigraph.errors.redact import redact_uri

_TIMEOUTS = {"timeout": "30s", "connect_timeout": "5s", "client_max_retries": "3"}


@dataclass(frozen=True, slots=True)
class Root:
    """The place of one graph. `path` is the directory, or `bucket/prefix`."""

    scheme: str
    path: str
    options: Mapping[str, str] = field(default_factory=dict, repr=False, compare=False)

    @property
    def local(self) -> bool:
        """Whether the root is a directory on this machine."""
        return self.scheme == "file"

    @property
    def uri(self) -> str:
        """The root as people write it."""
        return self.path if self.local else f"{self.scheme}://{self.path}"

    @property
    def identity(self) -> str:
        """Equal for every spelling of one root: links are followed, the scheme is kept."""
        return os.path.realpath(self.path) if self.local else self.uri

    def at(self, name: str) -> str:
        """What Lance is given for a root-relative name."""
        return f"{self.uri}/{name}"


def parse_root(uri: str | os.PathLike[str], environment: Mapping[str, str] = os.environ) -> Root:
    """Read a location: a path, `file://` or `s3://bucket/prefix`.

    >>> parse_root("s3://lake/graphs/people/", {}).path
    'lake/graphs/people'
    """
    text = os.fspath(uri)
    parts = urlsplit(text)
    if "://" not in text:
        return Root("file", _directory(text))
    if parts.scheme == "file":
        return Root("file", _directory(unquote(parts.path)))
    if parts.scheme == "s3":
        return Root("s3", _bucket(text, parts.netloc, parts.path), s3_options(environment))
    raise _refused(text, parts.scheme)


def s3_options(environment: Mapping[str, str]) -> dict[str, str]:
    """The settings of an S3 client from the `AWS_*` variables; `AWS_ENDPOINT_URL_S3` wins."""
    endpoint = environment.get("AWS_ENDPOINT_URL_S3") or environment.get("AWS_ENDPOINT_URL")
    path_style = environment.get("AWS_S3_FORCE_PATH_STYLE", "").lower() == "true"
    found = {
        "aws_region": environment.get("AWS_REGION"),
        "aws_access_key_id": environment.get("AWS_ACCESS_KEY_ID"),
        "aws_secret_access_key": environment.get("AWS_SECRET_ACCESS_KEY"),
        "aws_session_token": environment.get("AWS_SESSION_TOKEN"),
        "aws_endpoint": endpoint,
        "allow_http": "true" if environment.get("AWS_ALLOW_HTTP", "").lower() == "true" else None,
        "aws_virtual_hosted_style_request": "false" if path_style else None,
    }
    return {name: value for name, value in found.items() if value} | _TIMEOUTS


def _directory(path: str) -> str:
    if not path:
        raise InputError("an empty path names no graph", reason="empty location")
    return str(Path(path).expanduser().absolute())


def _bucket(uri: str, bucket: str, prefix: str) -> str:
    name = prefix.strip("/")
    if not bucket or not name or "@" in bucket:
        raise InputError(
            f"'{redact_uri(uri)}' is no place for a graph",
            reason="expected s3://bucket/prefix",
        )
    return f"{bucket}/{name}"


def _refused(uri: str, scheme: str) -> InputError:
    if scheme in ("http", "https"):
        reason = "this needs direct storage: a path or s3://bucket/prefix, not a server"
    else:
        reason = f"'{scheme}://' is not supported: give a path, file:// or s3://bucket/prefix"
    return InputError(f"'{redact_uri(uri)}' is not storage: {reason}", reason=reason)
