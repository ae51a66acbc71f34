"""How a branch or a tag came to be, recorded in the first version of its manifest.

Every publish carries the record on, so that a manifest whose ref object is lost still says what it
was called and which operation created it. It decides nothing while the ref object is there.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

from omnigraph.storage import layout

RefKind = Literal["branch", "tag"]


@dataclass(frozen=True, slots=True)
class Origin:
    """The creation of a branch or tag.

    `operation_id` is the intent of the creation, `number` the number of the ref object it was about
    to take, `parent_ulid` the branch that it was forked from.
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
    def place(self) -> str:
        """The directory of its ref objects."""
        return layout.TAGS if self.kind == "tag" else layout.REFS

    def to_json(self) -> dict[str, Any]:
        """The metadata of the manifest row."""
        return asdict(self)

    @classmethod
    def from_json(cls, facts: Mapping[str, Any]) -> "Origin":
        """The record of a manifest row; unknown members are skipped."""
        return cls(**{name: facts.get(name) for name in cls.__dataclass_fields__})  # type: ignore[arg-type]
