"""Connection settings of an S3 server, whichever program it is."""

from collections.abc import Mapping
from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class S3Server:
    """An S3 server on this machine, and the keys that it accepts."""

    port: int
    bucket: str = "omnigraph-tests"
    key: str = "rig-key"
    secret: str = "rig-secret-0123456789"

    def behind(self, port: int) -> "S3Server":
        """The same server, reached through a proxy."""
        return replace(self, port=port)

    @property
    def environment(self) -> Mapping[str, str]:
        """The variables with which everything reaches the server; nothing goes elsewhere."""
        return {
            "AWS_ENDPOINT_URL_S3": f"http://127.0.0.1:{self.port}",
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{self.port}",
            "AWS_ACCESS_KEY_ID": self.key,
            "AWS_SECRET_ACCESS_KEY": self.secret,
            "AWS_REGION": "us-east-1",
            "AWS_ALLOW_HTTP": "true",
            "AWS_S3_FORCE_PATH_STYLE": "true",
            "NO_PROXY": "127.0.0.1",
            "no_proxy": "127.0.0.1",
        }
