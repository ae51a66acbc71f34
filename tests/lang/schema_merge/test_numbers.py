"""Ids in merges: ours stay, theirs move out of the way, and later merges know about it."""

from omnigraph.lang.schema.merge import SchemaVersion, merge_schemas

from .versions import assert_sound, first_version, next_version


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
    moved = dict(merge.their_numbers)
    assert moved[_property_id(theirs, "A", "z")] == _property_id(merged, "A", "z")
    assert min(moved.values()) >= max(ours.ir.next_identity_id, theirs.ir.next_identity_id)


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
    assert new_number >= max(ours.ir.next_identity_id, theirs.ir.next_identity_id)
    assert new_number not in dict(merge.their_numbers).values()


def test_numbers_of_dropped_additions_are_not_reused() -> None:
    base = first_version("node A { x: I32 }")
    ours = next_version(base, ["node A { x: I32  y: I32? }", base.source])
    theirs = next_version(base, ["node A { x: I32  z: I32? }"])
    merge = merge_schemas(base, ours, theirs)
    assert merge.ir.property_id("node", "A", "z") >= ours.ir.next_identity_id
    assert merge.source == theirs.source


def _first_merge() -> tuple[SchemaVersion, SchemaVersion, SchemaVersion, dict[int, int]]:
    """Return a branch, the main line after merging the branch, the base, and the numbers of the merge."""
    base = first_version("node A { w: I32 }")
    main = next_version(base, ["node A { w: I32  x: I32? }"])
    branch = next_version(base, ["node A { w: I32  y: String? }"])
    merge = merge_schemas(base, main, branch)
    assert _property_id(main, "A", "x") == _property_id(branch, "A", "y")  # the hazard of a second merge
    return branch, SchemaVersion(merge.source, merge.ir), base, dict(merge.their_numbers)


def test_a_second_merge_of_the_same_branch_knows_the_numbers_of_the_first() -> None:
    branch, main, _, numbers = _first_merge()
    later = next_version(branch, ['node A { w: I32  renamed: String? @rename_from("y")  z: Bool? }'])
    merge = merge_schemas(branch, main, later, base_to_ours=numbers)
    assert_sound(main, main, SchemaVersion(later.source, merge.their_ir), merge)
    assert merge.conflicts == ()
    assert merge.ir.property_id("node", "A", "renamed") == _property_id(main, "A", "y")
    assert merge.ir.property_id("node", "A", "x") == _property_id(main, "A", "x")
    assert merge.their_ir.property_id("node", "A", "z") == merge.ir.property_id("node", "A", "z")
    assert len({number for _, number in merge.ir.identity("node", "A").property_ids}) == 4


def test_a_merge_back_knows_the_numbers_of_the_first() -> None:
    branch, main, _, numbers = _first_merge()
    ours = next_version(branch, ["node A { w: I32  y: String? @index }"])
    theirs = next_version(main, ["node A { w: I64  x: I32?  y: String? }"])
    merge = merge_schemas(branch, ours, theirs, base_to_theirs=numbers)
    assert merge.conflicts == ()
    assert merge.ir.property_id("node", "A", "y") == _property_id(ours, "A", "y")
    assert merge.their_ir.property_id("node", "A", "y") == _property_id(ours, "A", "y")
    assert merge.ir.property_id("node", "A", "x") == merge.their_ir.property_id("node", "A", "x")
    assert merge.ir.catalog.nodes[0].properties_by_name["w"].type.display() == "I64"
