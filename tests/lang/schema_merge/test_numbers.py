"""Ids in merges: additions of both sides keep their ids, so that later merges match them."""

from omnigraph.lang.schema.ir import assigned_ids
from omnigraph.lang.schema.merge import DroppedEdit, SchemaVersion, merge_schemas

from .versions import first_version, next_version


def _property_id(version: SchemaVersion, type_name: str, property_name: str) -> int:
    return version.ir.property_id("node", type_name, property_name)


def test_additions_of_both_sides_never_share_a_number() -> None:
    base = first_version("node A { x: I32 }")
    ours = next_version(base, ["node A { x: I32  y: I32? }"])
    theirs = next_version(base, ["node A { x: I32  z: I32? }  node B { w: I32 }"])
    merge = merge_schemas(base, ours, theirs)
    merged = SchemaVersion(merge.source, merge.ir)
    assert _property_id(merged, "A", "y") == _property_id(ours, "A", "y")
    assert merge.their_ir.property_id("node", "A", "z") == _property_id(merged, "A", "z")
    assert merge.their_ir.identity("node", "B") == merge.ir.identity("node", "B")
    assert merge.their_numbers == ()


def test_the_same_addition_has_our_number() -> None:
    base = first_version("node A { x: I32 }")
    ours = next_version(base, ["node A { x: I32  q: I32? }", "node A { x: I32  q: I32?  y: I32? }"])
    theirs = next_version(base, ["node A { x: I32  y: I32? }"])
    merge = merge_schemas(base, ours, theirs)
    assert merge.ir == ours.ir
    assert merge.their_ir.property_id("node", "A", "y") == _property_id(ours, "A", "y")


def test_an_unlike_addition_keeps_the_number_that_its_name_has() -> None:
    """The type tells the two properties apart, so no branch has to renumber what it added."""
    base = first_version("node A { x: I32 }")
    ours = next_version(base, ["node A { x: I32  y: I32? }"])
    theirs = next_version(base, ["node A { x: I32  y: String? }"])
    for side in ("ours", "theirs"):
        merge = merge_schemas(base, ours, theirs, lambda _, side=side: side)  # type: ignore[misc]
        assert merge.ir.property_id("node", "A", "y") == _property_id(ours, "A", "y")
        assert merge.their_numbers == ()


def test_a_property_that_an_earlier_merge_replaced_counts_as_dropped() -> None:
    """Edits of the replaced property are a conflict, and the side that wins decides its type."""
    start = first_version("node A { x: I32 }")
    ours = next_version(start, ["node A { x: I32  y: I32? }"])
    theirs = next_version(start, ["node A { x: I32  y: String? }"])
    number = _property_id(theirs, "A", "y")
    untouched = merge_schemas(theirs, ours, theirs)
    assert (untouched.conflicts, untouched.ir) == ((), ours.ir)
    edit = DroppedEdit("theirs", theirs.ir.type_id("node", "A"), number, 1)
    conflicts = merge_schemas(theirs, ours, theirs, dropped_edits=[edit]).conflicts
    assert [(one.kind, one.subject) for one in conflicts] == [("dropped_and_changed", "node:A.y")]
    for side, type_name in (("ours", "I32?"), ("theirs", "String?")):
        merge = merge_schemas(theirs, ours, theirs, lambda _, side=side: side, [edit])  # type: ignore[misc]
        assert f"y: {type_name}" in merge.source
        assert merge.ir.property_id("node", "A", "y") == number
        assert merge.ir.next_identity_id < 1 << 53


def test_a_wider_addition_takes_over_the_values_of_the_narrow_one() -> None:
    base = first_version("node A { x: I32 }")
    ours = next_version(base, ["node A { x: I32  y: I32? }"])
    theirs = next_version(base, ["node A { x: I32  y: I64? }"])
    take_theirs = merge_schemas(base, ours, theirs, lambda _: "theirs")
    assert take_theirs.ir.property_id("node", "A", "y") == _property_id(ours, "A", "y")


def test_a_property_that_neither_side_has_gets_a_new_number() -> None:
    base = first_version("interface I { x: I32 }")
    ours = next_version(base, ["interface I { x: I32  y: I32? }"])
    theirs = next_version(base, ["interface I { x: I32 }  node B implements I {}"])
    merge = merge_schemas(base, ours, theirs)
    new_number = merge.ir.property_id("node", "B", "y")
    assert new_number not in {*assigned_ids(ours.ir), *assigned_ids(theirs.ir)}
    assert merge_schemas(base, theirs, ours).ir.property_id("node", "B", "y") == new_number


def test_branches_can_be_merged_again_after_both_added_properties() -> None:
    base = first_version("node A { x: I32 }")
    branch = next_version(base, ["node A { x: I32  z: I32? }"])
    main = next_version(base, ["node A { x: I32  y: I32? }"])
    merged = merge_schemas(base, main, branch)
    later = next_version(branch, ["node A { x: I32  z: I64? }"])
    again = merge_schemas(branch, SchemaVersion(merged.source, merged.ir), later)
    assert not again.conflicts
    assert again.ir.property_id("node", "A", "y") == _property_id(main, "A", "y")
    assert again.ir.property_id("node", "A", "z") == _property_id(branch, "A", "z")
    assert "z: I64?" in again.source
