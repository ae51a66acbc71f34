"""Ids in merges: additions of both sides keep their ids, so that later merges match them."""

from omnigraph.lang.schema.ir import assigned_ids
from omnigraph.lang.schema.merge import SchemaVersion, merge_schemas

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


def test_an_unlike_addition_has_its_own_number() -> None:
    base = first_version("node A { x: I32 }")
    ours = next_version(base, ["node A { x: I32  y: I32? }"])
    theirs = next_version(base, ["node A { x: I32  y: String? }"])
    keep_ours = merge_schemas(base, ours, theirs, lambda _: "ours")
    assert keep_ours.ir.property_id("node", "A", "y") == _property_id(ours, "A", "y")
    assert keep_ours.their_ir.property_id("node", "A", "y") != _property_id(ours, "A", "y")
    take_theirs = merge_schemas(base, ours, theirs, lambda _: "theirs")
    assert take_theirs.ir.property_id("node", "A", "y") != _property_id(ours, "A", "y")
    assert take_theirs.ir.property_id("node", "A", "y") == take_theirs.their_ir.property_id("node", "A", "y")


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
