"""The origin record of a branch or tag, stored in its first manifest version.

Every publish copies the record to the new version. If the ref object is lost, the manifest still contains the name of
the branch or tag and the operation that created it. While the ref object exists, the record is not used.
"""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, Literal

from omnigraph.records.frozen import record
from omnigraph.storage import layout

RefKind = Literal["branch", "tag"]


@record
class Origin:
    """A record of how a branch or tag was created.

    `operation_id` is the creation intent's id, `number` is the ref number that the creation was about to claim, and
    `parent_ulid` identifies the parent branch. The field names are part of the stored format.
    """

    kind: RefKind
    name: str
    number: int
    operation_id: str
    parent: str
    parent_ulid: str
    created_at: int
    actor: str | None = None
    message: str | None = None

    @property
    def ref_directory(self) -> str:
        """The directory that contains the ref objects of the branch or tag."""
        return layout.TAGS if self.kind == "tag" else layout.REFS

    def to_json(self) -> dict[str, Any]:
        """Return the metadata for the manifest row."""
        return asdict(self)

    @classmethod
    def from_json(cls, metadata: Mapping[str, Any]) -> "Origin":
        """Parse a manifest row's metadata, ignoring unknown members."""
        return cls(
            **{field_name: metadata.get(field_name) for field_name in cls.__dataclass_fields__}  # type: ignore[arg-type]
        )
