"""The changes that a merge, revert or cherry-pick discards, as text and as JSON."""

from typing import TYPE_CHECKING, Any

from omnigraph.errors.conflict import to_json_value

from . import show
from .conflicts import format_value

if TYPE_CHECKING:
    from omnigraph.api.merge_sessions import MergeResult
    from omnigraph.merging.discarded_changes import DiscardedChange

_MAX_SHOWN = 10
_PART_TEXTS = {"entity": "the whole entity", "deletion": "the deletion"}


def print_discarded_changes(merge_result: "MergeResult", sides: tuple[str, str]) -> None:
    """Print the changes that conflict resolutions discard; `sides` are the names of the target and the source."""
    discarded = merge_result.discarded
    if not discarded:
        return
    is_preview = merge_result.commit is None and merge_result.outcome != "already_up_to_date"
    verb = "would be discarded" if is_preview else "discarded"
    lines = [f"{show.count(len(discarded), 'change')} {verb}:"]
    lines += [f"  {_describe_change(change)} from {_side_name(change, sides)}" for change in discarded[:_MAX_SHOWN]]
    if len(discarded) > _MAX_SHOWN:
        lines.append(f"  and {len(discarded) - _MAX_SHOWN} more (use --json to list all of them)")
    show.result("\n".join(lines))


def discarded_change_documents(merge_result: "MergeResult", sides: tuple[str, str]) -> list[dict[str, Any]]:
    """Return the discarded changes as JSON-compatible data."""
    return [_change_document(change, sides) for change in merge_result.discarded]


def _change_document(change: "DiscardedChange", sides: tuple[str, str]) -> dict[str, Any]:
    members: dict[str, Any] = {
        "entity_kind": change.entity_kind,
        "type_name": change.type_name,
        "entity_id": change.entity_id,
        "side": change.side,
        "changed_on": _side_name(change, sides),
        "part": change.part,
    }
    if change.part == "property":
        members["property"] = change.property_name
    return members if change.part == "deletion" else members | {"value": to_json_value(change.value)}


def _describe_change(change: "DiscardedChange") -> str:
    entity = f"{change.entity_kind} {change.type_name} '{change.entity_id}'"
    if change.part != "property" or change.property_name is None:
        return f"{entity}: {_PART_TEXTS[change.part]}"
    value_text = format_value({change.property_name: change.value}, change.property_name)
    return f"{entity}: {change.property_name} {value_text}"


def _side_name(change: "DiscardedChange", sides: tuple[str, str]) -> str:
    return sides[change.side == "theirs"]
