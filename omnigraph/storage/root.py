"""The location of a graph: a directory, or a prefix in a bucket.

This module parses URIs and the `AWS_*` variables, which override the shared AWS configuration files. All stored names
are relative to the root, so a root without running writers can be moved or copied. Secrets never appear in `repr` or
in errors.
"""

import os
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from urllib.parse import unquote, urlsplit

from omnigraph.errors import InputError
from omnigraph.errors.redact import redact_uri
from omnigraph.records.frozen import record

from .aws_profiles import read_aws_profile

# The options that callers may pass, and the names that Lance uses for them.
_LANCE_OPTION_NAMES = {
    **{
        given: name
        for name in (
            "aws_region",
            "aws_access_key_id",
            "aws_secret_access_key",
            "aws_session_token",
            "aws_endpoint",
            "aws_virtual_hosted_style_request",
        )
        for given in (name, name.removeprefix("aws_"))
    },
    "aws_endpoint_url": "aws_endpoint",
    "endpoint_url": "aws_endpoint",
    "aws_endpoint_url_s3": "aws_endpoint",
    "allow_http": "allow_http",
    "aws_allow_http": "allow_http",
    "timeout": "timeout",
    "connect_timeout": "connect_timeout",
    "client_max_retries": "client_max_retries",
}
_DEFAULT_TIMEOUTS = {"timeout": "30s", "connect_timeout": "5s", "client_max_retries": "3"}


@record
class GraphRoot:
    """The location of one graph. `path` is a directory, or `bucket/prefix`."""

    scheme: str
    path: str
    options: Mapping[str, str] = field(default_factory=dict, repr=False, compare=False)
    # Identifies the root regardless of how its location is spelled. Symbolic links are resolved only once, when this
    # object is created.
    identity: str = field(init=False, repr=False, compare=False)
    # The endpoint and the URI as the caller spelled them.
    spelling: str = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "identity", self._compute_identity())
        object.__setattr__(self, "spelling", f"{self.options.get('aws_endpoint', '')}|{self.uri}")

    @property
    def is_local(self) -> bool:
        """Whether the root is a directory on this machine."""
        return self.scheme == "file"

    @property
    def uri(self) -> str:
        """The path or URI of the root, as users write it."""
        return self.path if self.is_local else f"{self.scheme}://{self.path}"

    def _compute_identity(self) -> str:
        if self.is_local:
            return os.path.realpath(self.path)
        # The endpoint is included because two servers may have buckets with the same name. Secrets in the endpoint are
        # omitted.
        return f"{redact_uri(self.options.get('aws_endpoint', '')).rstrip('/')}|{self.uri}"

    @property
    def access_hash(self) -> int:
        """A hash of the connection settings, which identifies the settings of a root without revealing secrets."""
        return hash(frozenset(self.options.items()))

    def uri_of(self, relative_name: str) -> str:
        """Return the URI that Lance uses for a root-relative name."""
        return f"{self.uri}/{relative_name}"


def parse_root(
    uri: str | os.PathLike[str],
    environment: Mapping[str, str] = os.environ,
    storage_options: Mapping[str, object] | None = None,
) -> GraphRoot:
    """Parse a location: a path, `file://` or `s3://bucket/prefix`.

    `storage_options` take precedence over environment variables.

    >>> parse_root("s3://lake/graphs/people/", {}).path
    'lake/graphs/people'
    """
    uri_text = os.fspath(uri)
    uri_parts = urlsplit(uri_text)
    lance_options = read_options(storage_options or {})
    if "://" not in uri_text or uri_parts.scheme == "file":
        if lance_options:
            message = "storage options are not supported for a local directory"
            raise InputError(message, reason="unsupported option")
        return GraphRoot("file", _absolute_directory(uri_text if "://" not in uri_text else unquote(uri_parts.path)))
    if uri_parts.scheme == "s3":
        lance_options = s3_options(environment) | lance_options
        return GraphRoot("s3", _bucket_path(uri_text, uri_parts.netloc, uri_parts.path), lance_options)
    raise _unsupported_uri_error(uri_text, uri_parts.scheme)


def s3_options(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the S3 client settings from the `AWS_*` variables or, if unset, from the shared AWS configuration files.

    `AWS_ENDPOINT_URL_S3` overrides `AWS_ENDPOINT_URL`.
    """
    endpoint = environment.get("AWS_ENDPOINT_URL_S3") or environment.get("AWS_ENDPOINT_URL")
    path_style = environment.get("AWS_S3_FORCE_PATH_STYLE", "").lower() == "true"
    configured = {
        "aws_region": environment.get("AWS_REGION") or environment.get("AWS_DEFAULT_REGION"),
        "aws_access_key_id": environment.get("AWS_ACCESS_KEY_ID"),
        "aws_secret_access_key": environment.get("AWS_SECRET_ACCESS_KEY"),
        "aws_session_token": environment.get("AWS_SESSION_TOKEN"),
        "aws_endpoint": endpoint,
        "allow_http": "true" if environment.get("AWS_ALLOW_HTTP", "").lower() == "true" else None,
        "aws_virtual_hosted_style_request": "false" if path_style else None,
    }
    ambient = {option_name: value for option_name, value in configured.items() if value}
    return read_aws_profile(environment) | ambient | _DEFAULT_TIMEOUTS


def read_options(storage_options: Mapping[str, object]) -> dict[str, str]:
    """Return storage options under the names that Lance uses; raise `InputError` for an unknown option.

    Both the option names that Lance uses and the names of the `AWS_*` variables are accepted, in upper or lower case.

    >>> read_options({"AWS_REGION": "eu-west-1", "allow_http": True})
    {'aws_region': 'eu-west-1', 'allow_http': 'true'}
    """
    lance_options: dict[str, str] = {}
    for option_name, value in storage_options.items():
        lance_name = _LANCE_OPTION_NAMES.get(str(option_name).lower())
        if lance_name is None:
            raise InputError(
                f"unknown storage option '{option_name}'",
                reason="unknown storage option",
                hint=f"expected one of {', '.join(sorted(set(_LANCE_OPTION_NAMES.values())))}",
            )
        if value is not None:
            lance_options[lance_name] = str(value).lower() if isinstance(value, bool) else str(value)
    return lance_options


def _absolute_directory(directory: str) -> str:
    if not directory:
        raise InputError("the graph path must not be empty", reason="empty location")
    return str(Path(directory).expanduser().absolute())


def _bucket_path(uri: str, bucket: str, prefix: str) -> str:
    key_prefix = prefix.strip("/")
    if not bucket or not key_prefix or "@" in bucket:
        raise InputError(f"'{redact_uri(uri)}' is not a graph location", reason="expected s3://bucket/prefix")
    return f"{bucket}/{key_prefix}"


def _unsupported_uri_error(uri: str, scheme: str) -> InputError:
    if scheme in ("http", "https"):
        reason = "expected direct storage (a path or s3://bucket/prefix), not a server"
    else:
        reason = f"'{scheme}://' is not supported: use a path, file:// or s3://bucket/prefix"
    return InputError(f"'{redact_uri(uri)}' is not a storage location: {reason}", reason=reason)
