"""Merges of branches whose schemas differ, from the user's side."""

from pathlib import Path
from typing import Any

import pytest

import omnigraph
from omnigraph.api.graph import Graph
from omnigraph.errors import InputError, MergeConflict

SCHEMA = """
node Person { name: String @key  age: I32?  city: String? }
node Team { name: String @key }
edge MemberOf: Person -> Team { since: I32? }
"""
PEOPLE = [{"name": "Ada", "age": 36}, {"name": "Bob", "age": 25}, {"name": "Cyd"}]


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    graph = omnigraph.init(tmp_path / "graph", SCHEMA, durability="os")
    graph.insert("Person", *PEOPLE)
    graph.insert("Team", {"name": "Blue"})
    graph.connect_nodes("MemberOf", [("Ada", "Blue", {"since": 2020})])
    return graph


def people(graph: Graph, *columns: str) -> list[tuple[Any, ...]]:
    names = ", ".join(f"$p.{column} as {column}" for column in ("name", *columns))
    rows = graph.query(f"match {{ $p: Person }} return {{ {names} }} order {{ $p.name }}")
    return [tuple(record) for record in rows.to_records()]


def change(graph: Graph, old: str, new: str) -> None:
    graph.schema.apply(graph.schema.source.replace(old, new))


def test_a_schema_change_is_fast_forwarded(graph: Graph) -> None:
    dev = graph.branches.create("dev")
    change(dev, "city: String?", "city: String?  email: String?")
    dev.upsert("Person", {"name": "Ada", "age": 37, "email": "a@x"})
    merged = graph.merge("dev")
    assert merged.outcome == "fast_forward"
    assert people(graph, "age", "email") == [("Ada", 37, "a@x"), ("Bob", 25, None), ("Cyd", None, None)]
    assert "email" in graph.schema.source
    assert not graph.maintenance.check().findings


def test_a_column_without_values_is_fast_forwarded(graph: Graph) -> None:
    dev = graph.branches.create("dev")
    change(dev, "city: String?", "city: String?  email: String?")
    assert graph.merge("dev").outcome == "fast_forward"
    assert people(graph, "email") == [("Ada", None), ("Bob", None), ("Cyd", None)]
    graph.update("Person", where="name = $n", set={"email": "a@x"}, n="Ada")
    assert not graph.maintenance.check().findings


def test_a_new_property_and_new_rows_on_the_other_branch_are_combined(graph: Graph) -> None:
    dev = graph.branches.create("dev")
    change(dev, "city: String?", "city: String?  email: String?")
    dev.update("Person", where="name = $n", set={"email": "a@x"}, n="Ada")
    graph.insert("Person", {"name": "Dee", "age": 41})
    graph.update("Person", where="name = $n", set={"age": 26}, n="Bob")
    merged = graph.merge("dev")
    assert merged.outcome == "merged"
    expected = [("Ada", 36, "a@x"), ("Bob", 26, None), ("Cyd", None, None), ("Dee", 41, None)]
    assert people(graph, "age", "email") == expected
    assert not graph.maintenance.check().findings


def test_an_older_branch_is_merged_into_a_changed_schema(graph: Graph) -> None:
    dev = graph.branches.create("dev")
    dev.update("Person", where="name = $n", set={"age": 40}, n="Ada")
    dev.insert("Person", {"name": "Dee"})
    change(graph, "city: String?", 'city: String?  role: String @default("guest")')
    graph.update("Person", where="name = $n", set={"role": "owner"}, n="Bob")
    assert graph.merge("dev").outcome == "merged"
    expected = [("Ada", 40, "guest"), ("Bob", 25, "owner"), ("Cyd", None, "guest"), ("Dee", None, "guest")]
    assert people(graph, "age", "role") == expected
    assert not graph.maintenance.check().findings


def test_changes_of_both_schemas_are_combined(graph: Graph) -> None:
    dev = graph.branches.create("dev")
    change(dev, "age: I32?", "age: I64?")
    change(dev, "node Team", "node Place { name: String @key }\nnode Team")
    dev.insert("Place", {"name": "Rome"})
    change(graph, "city: String?", 'town: String? @rename_from("city")  email: String?')
    graph.update("Person", where="name = $n", set={"town": "Rome", "email": "a@x"}, n="Ada")
    dev.update("Person", where="name = $n", set={"age": 1 << 40}, n="Bob")
    assert graph.merge("dev").outcome == "merged"
    expected = [("Ada", 36, "Rome", "a@x"), ("Bob", 1 << 40, None, None), ("Cyd", None, None, None)]
    assert people(graph, "age", "town", "email") == expected
    assert graph.nodes("Place").ids() == ["Rome"]
    assert not graph.maintenance.check().findings
    assert graph.merge("dev").outcome == "already_up_to_date"


def test_a_renamed_type_takes_rows_under_its_old_name(graph: Graph) -> None:
    dev = graph.branches.create("dev")
    dev.insert("Team", {"name": "Red"})
    dev.connect_nodes("MemberOf", [("Bob", "Red")])
    renamed = graph.schema.source.replace("node Team {", 'node Crew @rename_from("Team") {')
    graph.schema.apply(renamed.replace("-> Team", "-> Crew"))
    assert graph.merge("dev").outcome == "merged"
    assert sorted(graph.nodes("Crew").ids()) == ["Blue", "Red"]
    assert graph.nodes("Person").where(name="Bob").out("MemberOf").ids() == ["Red"]
    assert not graph.maintenance.check().findings


def test_incompatible_changes_are_conflicts_that_a_strategy_decides(graph: Graph) -> None:
    dev = graph.branches.create("dev")
    change(dev, "age: I32?", "age: I64?")
    change(graph, "age: I32?", "age: F64?")
    preview = graph.merge("dev", dry_run=True)
    assert preview.outcome == "conflict"
    with pytest.raises(MergeConflict) as caught:
        graph.merge("dev")
    (conflict,) = caught.value.conflicts
    assert (conflict.kind, conflict.type_name) == ("schema_conflict", "Person.age")
    assert "\n  Person.age: changed differently; on 'main': F64, on 'dev': I64\n" in str(caught.value)
    assert "I64" in str(conflict.theirs)
    assert "F64" in str(conflict.ours)
    dev.update("Person", where="name = $n", set={"age": 40}, n="Ada")
    assert graph.merge("dev", strategy="ours").outcome == "merged"
    assert "age: F64?" in graph.schema.source
    assert people(graph, "age") == [("Ada", 40.0), ("Bob", 25.0), ("Cyd", None)]
    assert not graph.maintenance.check().findings


def test_a_session_resolves_schema_conflicts_before_row_conflicts(graph: Graph) -> None:
    dev = graph.branches.create("dev")
    change(dev, "city: String?", 'town: String? @rename_from("city")')
    change(dev, "since: I32?", 'year: I32? @rename_from("since")')
    dev.update("Person", where="name = $n", set={"age": 37}, n="Ada")
    change(graph, "city: String?", 'place: String? @rename_from("city")')
    change(graph, "since: I32?", 'start: I32? @rename_from("since")')
    graph.update("Person", where="name = $n", set={"age": 40}, n="Ada")
    session = graph.branches.merge_session("dev")
    assert session.conflicts == graph.merge("dev", dry_run=True).conflicts
    assert {one.kind for one in session.open} == {"schema_conflict"}
    assert (len(session), session.preview().outcome) == (2, "conflict")
    with pytest.raises(InputError, match="cannot be resolved with values"):
        session.resolve(0, {"declaration": "x"})
    session.resolve(0, "ours").resolve(1, "ours").resolve(1, "theirs")
    assert [(one.kind, one.entity_id) for one in session.open] == [("divergent_update", "Ada")]
    session.resolve(2, {"age": 38})
    merged = session.commit()
    assert (merged.outcome, merged.stats["resolved"]) == ("merged", 3)
    sides = dict(zip([one.type_name for one in session.conflicts[:2]], ("ours", "theirs"), strict=True))
    names = {"Person.city": {"ours": "place", "theirs": "town"}, "MemberOf.since": {"ours": "start", "theirs": "year"}}
    for name, side in sides.items():
        known = next(names[key] for key in names if key.split(".")[0] == name.split(".")[0])
        assert f"{known[side]}: " in graph.schema.source
    assert people(graph, "age")[0] == ("Ada", 38)
    assert not graph.maintenance.check().findings


def test_a_session_resolves_all_conflicts_of_schemas_and_rows(graph: Graph) -> None:
    dev = graph.branches.create("dev")
    change(dev, "age: I32?", "age: I64?")
    change(graph, "age: I32?", "age: F64?")
    for handle, age in ((dev, 37), (graph, 40)):
        handle.update("Person", where="name = $n", set={"age": age}, n="Ada")
    session = graph.branches.merge_session("dev")
    assert session.resolve_all("ours").open == ()
    assert session.commit().stats["resolved"] == 2
    assert people(graph, "age")[0] == ("Ada", 40.0)


def test_rows_must_satisfy_rules_that_the_other_branch_added(graph: Graph) -> None:
    """Rows of the target and rows of the source alike, and the preview says so."""
    dev = graph.branches.create("dev")
    change(dev, "city: String?", "city: String?  @range(age, 0..100)")
    late = graph.branches.create("late")
    for target, source, name in ((graph, dev, "Dee"), (dev, late, "Eve")):
        changed = target if target is graph else source
        changed.insert("Person", {"name": name, "age": 101})
        preview = target.merge(source.branch_name, dry_run=True)
        assert [(one.kind, one.entity_id) for one in preview.conflicts] == [("value_constraint_violation", name)]
        with pytest.raises(MergeConflict):
            target.merge(source.branch_name)
    assert "@range" not in graph.schema.source


def test_a_strategy_decides_about_rows_of_the_target_that_break_a_rule_of_the_source(graph: Graph) -> None:
    dev = graph.branches.create("dev")
    change(dev, "city: String?", "city: String?  @range(age, 0..100)")
    graph.update("Person", where="name = $n", set={"age": 101, "city": "Rome"}, n="Ada")
    graph.insert("Person", {"name": "Dee", "age": 102})
    with pytest.raises(MergeConflict) as caught:
        graph.merge("dev", strategy="ours")  # these values stay outside the range
    assert [conflict.entity_id for conflict in caught.value.conflicts] == ["Ada", "Dee"]
    merged = graph.merge("dev", strategy="theirs")
    assert people(graph, "age", "city") == [("Ada", 36, "Rome"), ("Bob", 25, None), ("Cyd", None, None)]
    assert [(one.entity_id, one.side, one.part) for one in merged.discarded] == [
        ("Ada", "ours", "property"),
        ("Dee", "ours", "entity"),
    ]
    assert not graph.maintenance.check().findings


@pytest.mark.parametrize(
    ("old", "new", "repair"),
    [
        ("city: String?", "city: String?  @range(age, 0..30)", {"name": "Ada", "age": 20}),
        ("age: I32?", "age: I32", {"name": "Cyd", "age": 20}),
        ("age: I32?", "age: I32? @unique", {"name": "Ada", "age": 20}),
    ],
)
def test_a_branch_that_corrects_rows_and_then_adds_a_rule_can_be_merged(
    graph: Graph, old: str, new: str, repair: dict[str, Any]
) -> None:
    graph.update("Person", where="name = $n", set={"age": 36}, n="Bob") if "unique" in new else None
    dev = graph.branches.create("dev")
    dev.upsert("Person", repair)
    change(dev, old, new)
    graph.insert("Person", {"name": "Dee", "age": 7})
    assert graph.merge("dev").outcome == "merged"
    assert dict(people(graph, "age"))[repair["name"]] == 20
    assert not graph.maintenance.check().findings


def test_cross_row_rules_of_the_source_are_checked_on_the_changes_of_the_target(graph: Graph) -> None:
    graph.insert("Team", {"name": "Red"}, {"name": "Gold"})
    graph.connect_nodes("MemberOf", [("Ada", "Red"), ("Bob", "Red"), ("Bob", "Gold")])
    dev = graph.branches.create("dev")
    change(dev, "age: I32?", "age: I32? @unique")
    change(dev, "-> Team {", "-> Team @card(2..2) {")
    graph.insert("Person", {"name": "Dee", "age": 25})
    graph.connect_nodes("MemberOf", [("Ada", "Gold")])
    graph.delete("MemberOf", where="from = 'Bob' and to = 'Gold'")
    with pytest.raises(MergeConflict) as caught:
        graph.merge("dev")
    assert [(conflict.kind, conflict.entity_id) for conflict in caught.value.conflicts] == [
        ("unique_violation", "Dee"),
        ("cardinality_violation", "Ada"),
        ("cardinality_violation", "Bob"),
    ]
    assert graph.merge("dev", strategy="theirs").outcome == "merged"
    assert graph.nodes("Person").ids() == ["Ada", "Bob", "Cyd"]
    assert not graph.maintenance.check().findings


@pytest.mark.parametrize("strategy", ["ours", "theirs"])
def test_a_property_renamed_differently_gets_the_name_of_the_chosen_side(graph: Graph, strategy: Any) -> None:
    dev = graph.branches.create("dev")
    change(dev, "city: String?", 'town: String? @rename_from("city")')
    dev.update("Person", where="name = $n", set={"town": "Rome"}, n="Ada")
    change(graph, "city: String?", 'place: String? @rename_from("city")')
    assert graph.merge("dev", strategy=strategy).outcome == "merged"
    name = {"ours": "place", "theirs": "town"}[strategy]
    assert people(graph, name) == [("Ada", "Rome"), ("Bob", None), ("Cyd", None)]
    assert not graph.maintenance.check().findings


def test_a_branch_that_changed_only_its_schema_can_be_merged_twice(graph: Graph) -> None:
    dev = graph.branches.create("dev")
    change(dev, "since: I32?", "since: I32?  until: I32?")
    graph.insert("Person", {"name": "Dee"})
    graph.merge("dev")
    dev.connect_nodes("MemberOf", [("Bob", "Blue", {"since": 1, "until": 2})])
    assert graph.merge("dev").outcome == "merged"
    assert graph.merge("main", into="dev").outcome == "fast_forward"
    assert sorted(dev.refresh().nodes("Person").ids()) == ["Ada", "Bob", "Cyd", "Dee"]
    assert not graph.maintenance.check().findings


def test_branches_that_both_add_properties_can_be_merged_again_and_again(graph: Graph) -> None:
    dev = graph.branches.create("dev")
    change(dev, "city: String?", "city: String?  phone: String?  email: String?")
    change(graph, "city: String?", "city: String?  email: String?")
    graph.update("Person", where="name = $n", set={"email": "a@x"}, n="Ada")
    graph.merge("dev")
    dev.update("Person", where="name = $n", set={"phone": "1", "email": "b@x"}, n="Bob")
    graph.update("Person", where="name = $n", set={"phone": "2", "email": "c@x"}, n="Cyd")
    graph.merge("dev")
    assert people(graph, "phone", "email") == [("Ada", None, "a@x"), ("Bob", "1", "b@x"), ("Cyd", "2", "c@x")]
    dev.merge("main", into="dev")
    change(dev, "phone: String?", "")
    change(graph, "city: String?", "city: String?  zip: String?")
    graph.update("Person", where="name = $n", set={"zip": "9"}, n="Ada")
    graph.merge("dev")
    assert "phone" not in graph.schema.source
    assert people(graph, "zip", "email") == [("Ada", "9", "a@x"), ("Bob", None, "b@x"), ("Cyd", None, "c@x")]
    assert not graph.maintenance.check().findings


def test_unique_values_are_compared_in_the_wider_type(tmp_path: Path) -> None:
    graph = omnigraph.init(tmp_path / "graph", "node Item { name: String @key  code: I32? @unique }", durability="os")
    graph.insert("Item", {"name": "a", "code": 7})
    dev = graph.branches.create("dev")
    change(dev, "code: I32?", "code: I64?")
    dev.insert("Item", {"name": "b", "code": 1 << 40}, {"name": "c", "code": 8})
    graph.insert("Item", {"name": "d", "code": 8})
    with pytest.raises(MergeConflict) as caught:
        graph.merge("dev")
    assert {conflict.kind for conflict in caught.value.conflicts} == {"unique_violation"}
    dev.update("Item", where="name = $n", set={"code": 9}, n="c")
    assert graph.merge("dev").outcome == "merged"
    assert not graph.maintenance.check().findings


def test_a_table_that_the_source_reset_is_taken_over(graph: Graph) -> None:
    graph.load([{"type": "Person", "data": {"name": "Eve"}}, {"type": "Team", "data": {"name": "Red"}}], mode="append")
    loaded = graph.head.id
    graph.update("Person", where="name = $n", set={"age": 99}, n="Ada")
    dev = graph.branches.create("dev")
    graph.branches.reset("dev", to=loaded)
    change(dev.refresh(), "since: I32?", "since: I32?  until: I32?")
    graph.insert("Team", {"name": "Gold"})
    assert graph.merge("dev").outcome == "merged"
    assert people(graph, "age")[0] == ("Ada", 36)


def discards(result: Any) -> list[tuple[Any, ...]]:
    return [
        (one.type_name, one.entity_id, one.side, one.part, one.property_name, one.value) for one in result.discarded
    ]


@pytest.mark.parametrize("dropper", ["ours", "theirs"])
def test_a_drop_of_a_property_whose_values_the_other_branch_edited_is_a_conflict(graph: Graph, dropper: str) -> None:
    """The side that drops wins: the edits are named. The other side wins: every value is there again."""
    graph.update("Person", where="name = $n", set={"city": "Bonn"}, n="Ada")
    graph.update("Person", where="name = $n", set={"city": "Cork"}, n="Cyd")
    dev = graph.branches.create("dev")
    dropping, editing = (graph, dev) if dropper == "ours" else (dev, graph)
    change(dropping, "city: String?", "")
    dropping.update("Person", where="name = $n", set={"age": 1}, n="Ada")
    dropping.delete("Person", where="name = $n", n="Cyd")
    dropping.insert("Person", {"name": "Eve"})
    editing.update("Person", where="name = $n", set={"city": "Rome"}, n="Bob")
    editing.insert("Person", {"name": "Dee", "city": "Oslo"}, {"name": "Fay"})
    assert graph.merge("dev", dry_run=True).outcome == "conflict"
    with pytest.raises(MergeConflict) as caught:
        graph.merge("dev")
    (conflict,) = caught.value.conflicts
    assert (conflict.kind, conflict.type_name) == ("schema_conflict", "Person.city")
    assert "city: String? (values written in 2 entities)" in str(
        conflict.ours if dropper == "theirs" else conflict.theirs
    )
    keeper = "theirs" if dropper == "ours" else "ours"
    trial = graph.branches.create("trial")
    dropped = graph.merge("dev", into="trial", strategy=dropper)
    assert (dropped.outcome, dropped.stats["resolved"]) == ("merged", 1)
    edits = [("Bob", keeper, "property", "city", "Rome"), ("Dee", keeper, "property", "city", "Oslo")]
    assert discards(dropped) == [("Person", *edit) for edit in edits]
    assert dropped.commit is not None
    assert (dropped.commit.details["resolved"], dropped.commit.details["discarded"]) == (1, 2)
    names = [("Ada", 1), ("Bob", 25), ("Dee", None), ("Eve", None), ("Fay", None)]
    assert people(trial.refresh(), "age") == names
    kept = graph.merge("dev", strategy={"schema_conflict": keeper})
    assert (kept.outcome, kept.stats["resolved"], discards(kept)) == ("merged", 1, [])
    cities = ["Bonn", "Rome", "Oslo", None, None]
    assert people(graph, "age", "city") == [(*row, city) for row, city in zip(names, cities, strict=True)]
    assert not graph.maintenance.check().findings
    assert graph.merge("dev").outcome == "already_up_to_date"


@pytest.mark.parametrize("strategy", ["ours", "theirs"])
def test_a_drop_of_a_type_whose_entities_the_other_branch_edited_is_a_conflict(graph: Graph, strategy: Any) -> None:
    dev = graph.branches.create("dev")
    change(graph, "edge MemberOf: Person -> Team { since: I32? }", "")
    change(graph, "node Team { name: String @key }", "")
    dev.insert("Team", {"name": "Red"})
    with pytest.raises(MergeConflict) as caught:
        graph.merge("dev")
    assert [(one.kind, one.type_name) for one in caught.value.conflicts] == [("schema_conflict", "Team")]
    merged = graph.merge("dev", strategy=strategy)
    assert ("node Team" in graph.schema.source) == (strategy == "theirs")
    if strategy == "theirs":
        assert (sorted(graph.nodes("Team").ids()), discards(merged)) == (["Blue", "Red"], [])
    else:
        assert discards(merged) == [("Team", "Red", "theirs", "entity", None, {"name": "Red"})]
    assert not graph.maintenance.check().findings


def test_a_drop_without_edits_of_the_other_branch_is_no_conflict(graph: Graph) -> None:
    dev = graph.branches.create("dev")
    change(graph, "city: String?", "")
    dev.update("Person", where="name = $n", set={"age": 40}, n="Ada")
    dev.insert("Person", {"name": "Dee"})
    merged = graph.merge("dev")
    assert (merged.outcome, merged.stats["resolved"], merged.discarded) == ("merged", 0, ())


def criss_cross(graph: Graph) -> Graph:
    """Two branches that merged each other: both merges have both former heads as bases."""
    dev = graph.branches.create("dev")
    change(graph, "city: String?", "city: String?  email: String?")
    graph.update("Person", where="name = $n", set={"email": "a@x"}, n="Ada")
    change(dev, "city: String?", 'town: String? @rename_from("city")')
    dev.update("Person", where="name = $n", set={"town": "Rome", "age": 26}, n="Bob")
    graph.branches.create("aside")
    graph.merge("dev")
    graph.merge("aside", into="dev")
    return dev.refresh()


def test_schemas_are_merged_over_several_bases(graph: Graph) -> None:
    dev = criss_cross(graph)
    change(dev, "age: I32?", "age: I64?")
    change(graph, "town: String?", 'place: String? @rename_from("town")')
    dev.update("Person", where="name = $n", set={"age": 1 << 40, "email": "c@x"}, n="Cyd")
    dev.update("Person", where="name = $n", set={"town": "Oslo"}, n="Ada")
    graph.update("Person", where="name = $n", set={"email": "b@x"}, n="Bob")
    assert graph.merge("dev").outcome == "merged"
    expected = [("Ada", 36, "Oslo", "a@x"), ("Bob", 26, "Rome", "b@x"), ("Cyd", 1 << 40, None, "c@x")]
    assert people(graph, "age", "place", "email") == expected
    assert not graph.maintenance.check().findings
    assert graph.merge("main", into="dev").outcome == "fast_forward"


def test_several_bases_and_a_property_that_one_branch_drops(graph: Graph) -> None:
    dev = criss_cross(graph)
    change(graph, "town: String?", "")
    dev.update("Person", where="name = $n", set={"town": "Oslo"}, n="Ada")
    dev.update("Person", where="name = $n", set={"age": 3}, n="Cyd")
    with pytest.raises(MergeConflict) as caught:
        graph.merge("dev")
    assert [conflict.type_name for conflict in caught.value.conflicts] == ["Person.town"]
    assert graph.merge("dev", strategy="theirs").outcome == "merged"
    assert people(graph, "age", "town") == [("Ada", 36, "Oslo"), ("Bob", 26, "Rome"), ("Cyd", 3, None)]


def test_an_addition_that_one_branch_renamed_is_a_conflict_in_both_directions(graph: Graph) -> None:
    dev = graph.branches.create("dev")
    for branch in (graph, dev):
        change(branch, "city: String?", "city: String?  email: String?")
    change(dev, "email: String?", 'mail: String? @rename_from("email")')
    for source, target in (("dev", "main"), ("main", "dev")):
        (conflict,) = graph.merge(source, into=target, dry_run=True).conflicts
        assert (conflict.kind, conflict.type_name.partition(".")[0]) == ("schema_conflict", "Person")
    graph.merge("dev", strategy="theirs")
    assert "mail: String?" in graph.schema.source


def both_add(graph: Graph, ours: str, theirs: str) -> Graph:
    """Both branches add a property after `city`; each then adds an entity and edits one."""
    dev = graph.branches.create("dev")
    change(graph, "city: String?", f"city: String?  {ours}")
    change(dev, "city: String?", f"city: String?  {theirs}")
    return dev


@pytest.mark.parametrize(("strategy", "filled"), [("ours", "a"), ("theirs", "b")])
def test_existing_rows_get_the_default_of_the_chosen_side(graph: Graph, strategy: Any, filled: str) -> None:
    """Edits, and rows that a side created, keep what that side stored."""
    dev = both_add(graph, 'role: String @default("a")', 'role: String @default("b")')
    graph.insert("Person", {"name": "Dee"})
    graph.update("Person", where="name = $n", set={"role": "owner"}, n="Ada")
    dev.insert("Person", {"name": "Eve"})
    dev.update("Person", where="name = $n", set={"role": "guest"}, n="Bob")
    merged = graph.merge("dev", strategy=strategy)
    assert (merged.outcome, merged.discarded) == ("merged", ())
    expected = [("Ada", "owner"), ("Bob", "guest"), ("Cyd", filled), ("Dee", "a"), ("Eve", "b")]
    assert people(graph, "role") == expected
    assert not graph.maintenance.check().findings
    dev.insert("Person", {"name": "Fay"})
    assert graph.merge("dev").outcome == "merged"
    assert people(graph, "role") == [*expected, ("Fay", "b")]


@pytest.mark.parametrize(("strategy", "filled"), [("ours", "a"), ("theirs", None)])
def test_existing_rows_are_null_if_the_chosen_side_allows_it(graph: Graph, strategy: Any, filled: str | None) -> None:
    dev = both_add(graph, 'role: String @default("a")', "role: String?")
    dev.update("Person", where="name = $n", set={"role": "guest"}, n="Bob")
    graph.merge("dev", strategy=strategy)
    assert people(graph, "role") == [("Ada", filled), ("Bob", "guest"), ("Cyd", filled)]
    assert not graph.maintenance.check().findings


@pytest.mark.parametrize(("ours", "theirs"), [("I64?", "F64?"), ("F64?", "I64?")])
@pytest.mark.parametrize("strategy", ["ours", "theirs"])
def test_values_are_converted_to_the_number_type_of_the_chosen_side(
    graph: Graph, ours: str, theirs: str, strategy: Any
) -> None:
    """A value that does not fit is a conflict of its entity; once it is corrected, the branches can be merged."""
    dev = graph.branches.create("dev")
    change(graph, "age: I32?", f"age: {ours}")
    change(dev, "age: I32?", f"age: {theirs}")
    dev.update("Person", where="name = $n", set={"age": 40}, n="Ada")
    graph.insert("Person", {"name": "Dee", "age": 7})
    dev.insert("Person", {"name": "Eve", "age": 8})
    loser, side, chosen = (dev, "theirs", ours) if strategy == "ours" else (graph, "ours", theirs)
    unfit = 1.5 if chosen == "I64?" else (1 << 53) + 1
    loser.update("Person", where="name = $n", set={"age": unfit}, n="Cyd")
    (conflict,) = graph.merge("dev", strategy=strategy, dry_run=True).conflicts
    assert (conflict.kind, conflict.type_name, conflict.entity_id) == ("value_constraint_violation", "Person", "Cyd")
    assert getattr(conflict, side) == {"age": unfit}
    assert f"on '{loser.branch_name}', age is {unfit!r}, which does not fit {chosen}" in conflict.message
    with pytest.raises(MergeConflict):
        graph.merge("dev", strategy=strategy)
    loser.update("Person", where="name = $n", set={"age": 2}, n="Cyd")
    merged = graph.merge("dev", strategy=strategy)
    assert f"age: {chosen}" in graph.schema.source
    assert people(graph, "age") == [("Ada", 40), ("Bob", 25), ("Cyd", 2), ("Dee", 7), ("Eve", 8)]
    step = f"convert node:Person.age from {ours} to {theirs}"
    assert str(merged.schema_change) == ("None" if strategy == "ours" else step)
    assert not graph.maintenance.check().findings
    dev.update("Person", where="name = $n", set={"age": 41}, n="Ada")
    graph.merge("dev")
    assert people(graph, "age")[0] == ("Ada", 41)


@pytest.mark.parametrize("strategy", ["ours", "theirs"])
def test_a_property_added_with_different_types_takes_the_type_of_the_chosen_side(graph: Graph, strategy: Any) -> None:
    """The column of the other side is dropped, and its values are listed as discarded; later merges work, too."""
    dev = both_add(graph, "level: String?", "level: I32?")
    graph.update("Person", where="name = $n", set={"level": "high"}, n="Ada")
    graph.insert("Person", {"name": "Dee", "level": "low"})
    dev.update("Person", where="name = $n", set={"level": 3}, n="Ada")
    dev.update("Person", where="name = $n", set={"level": 4, "age": 26}, n="Bob")
    dev.insert("Person", {"name": "Eve", "level": 5})
    with pytest.raises(MergeConflict) as caught:
        graph.merge("dev")
    (conflict,) = caught.value.conflicts
    assert (conflict.kind, conflict.type_name) == ("schema_conflict", "Person.level")
    assert "added differently; on 'main': String?, on 'dev': I32?" in conflict.message
    merged = graph.merge("dev", strategy=strategy)
    results: dict[str, list[tuple[Any, ...]]] = {
        "ours": [
            ("Ada", 36, "high"),
            ("Bob", 26, None),
            ("Cyd", None, None),
            ("Dee", None, "low"),
            ("Eve", None, None),
        ],
        "theirs": [("Ada", 36, 3), ("Bob", 26, 4), ("Cyd", None, None), ("Dee", None, None), ("Eve", None, 5)],
    }
    expected = results[strategy]
    losses: dict[str, list[tuple[Any, ...]]] = {
        "ours": [("Ada", "theirs", 3), ("Bob", "theirs", 4), ("Eve", "theirs", 5)],
        "theirs": [("Ada", "ours", "high"), ("Dee", "ours", "low")],
    }
    assert people(graph, "age", "level") == expected
    assert discards(merged) == [
        ("Person", name, side, "property", "level", value) for name, side, value in losses[strategy]
    ]
    assert not graph.maintenance.check().findings
    dev.update("Person", where="name = $n", set={"age": 1}, n="Cyd")
    graph.update("Person", where="name = $n", set={"level": expected[0][2]}, n="Bob")
    assert graph.merge("dev").outcome == "merged"
    assert people(graph, "age", "level")[1:3] == [("Bob", 26, expected[0][2]), ("Cyd", 1, None)]


def test_edits_of_a_property_that_an_earlier_merge_replaced_are_a_conflict(graph: Graph) -> None:
    dev = both_add(graph, "level: String?", "level: I32?")
    dev.update("Person", where="name = $n", set={"level": 4}, n="Bob")
    graph.merge("dev", strategy="ours")
    graph.update("Person", where="name = $n", set={"level": "high"}, n="Ada")
    dev.update("Person", where="name = $n", set={"level": 5}, n="Cyd")
    with pytest.raises(MergeConflict) as caught:
        graph.merge("dev")
    assert [(one.kind, one.type_name) for one in caught.value.conflicts] == [("schema_conflict", "Person.level")]
    trial = graph.branches.create("trial")
    dropped = graph.merge("dev", into="trial", strategy="ours")
    assert discards(dropped) == [("Person", "Cyd", "theirs", "property", "level", 5)]
    assert people(trial.refresh(), "level") == [("Ada", "high"), ("Bob", None), ("Cyd", None)]
    restored = graph.merge("dev", strategy="theirs")
    assert people(graph, "level") == [("Ada", None), ("Bob", 4), ("Cyd", 5)]
    assert discards(restored) == [("Person", "Ada", "ours", "property", "level", "high")]
    assert not graph.maintenance.check().findings
    back = graph.merge("main", into="dev")
    assert back.outcome == "fast_forward"


@pytest.mark.parametrize("adder", ["ours", "theirs"])
def test_values_of_an_addition_that_loses_its_name_are_discarded(graph: Graph, adder: Any) -> None:
    """One branch renames a property and a type; the other adds a property and a type with these names, and values."""
    dev = graph.branches.create("dev")
    adding, renaming = (graph, dev) if adder == "ours" else (dev, graph)
    renamed = renaming.schema.source.replace("city: String?", 'place: String? @rename_from("city")')
    renamed = renamed.replace("-> Team", "-> Group")
    renaming.schema.apply(renamed.replace("node Team {", 'node Group @rename_from("Team") {'))
    change(adding, "city: String?", "city: String?  place: String?  rank: I32 @default(3)")
    change(adding, "node Team", "node Group { name: String @key }\nnode Team")
    adding.update("Person", where="name = $n", set={"place": "Rome", "rank": 4}, n="Bob")
    adding.insert("Person", {"name": "Dee", "place": "Oslo"}, {"name": "Eve"})
    adding.insert("Group", {"name": "Red"})
    winner = "theirs" if adder == "ours" else "ours"
    assert len(graph.merge("dev", dry_run=True).conflicts) == 2
    lost = [
        ("Group", "Red", adder, "entity", None, {"name": "Red"}),
        ("Person", "Bob", adder, "property", "place", "Rome"),
        ("Person", "Dee", adder, "property", "place", "Oslo"),
    ]
    assert discards(graph.merge("dev", dry_run=True, strategy=winner)) == lost
    merged = graph.merge("dev", strategy=winner)
    assert (discards(merged), graph.nodes("Group").ids()) == (lost, ["Blue"])
    assert people(graph, "place", "rank")[1] == ("Bob", None, 4)
    assert not graph.maintenance.check().findings


def contradictory_bases(graph: Graph, ours: str, theirs: str) -> Graph:
    """Two branches that changed `city` differently and merged each other, and each kept its own declaration."""
    graph.update("Person", where="name = $n", set={"city": "Bonn"}, n="Ada")
    dev = graph.branches.create("dev")
    change(graph, "city: String?", ours)
    change(dev, "city: String?", theirs)
    graph.branches.create("aside")
    graph.merge("dev", strategy="ours")
    graph.merge("aside", into="dev", strategy="ours")
    return dev.refresh()


@pytest.mark.parametrize("strategy", ["ours", "theirs"])
def test_strategies_decide_about_bases_with_contradictory_names(graph: Graph, strategy: Any) -> None:
    dev = contradictory_bases(graph, 'place: String? @rename_from("city")', 'town: String? @rename_from("city")')
    dev.update("Person", where="name = $n", set={"town": "Rome"}, n="Bob")
    with pytest.raises(MergeConflict) as caught:
        graph.merge("dev")
    (conflict,) = caught.value.conflicts
    assert (conflict.kind, conflict.type_name) == ("schema_conflict", "Person.place")
    assert "renamed differently; on 'main': place, on 'dev': town" in conflict.message
    assert graph.merge("dev", strategy=strategy).outcome == "merged"
    name = "place" if strategy == "ours" else "town"
    assert people(graph, name) == [("Ada", "Bonn"), ("Bob", "Rome"), ("Cyd", None)]
    assert not graph.maintenance.check().findings
    dev.insert("Person", {"name": "Dee", "town": "Oslo"})
    assert graph.merge("dev").outcome == "merged"
    assert people(graph, name)[3] == ("Dee", "Oslo")


@pytest.mark.parametrize("strategy", ["ours", "theirs"])
@pytest.mark.parametrize("reverting", ["main", "dev"])
def test_a_return_to_the_first_name_is_not_lost_over_contradictory_bases(
    graph: Graph, strategy: Any, reverting: str
) -> None:
    """The declaration that one branch went back to is that of the bases' base, but does not count as unchanged."""
    dev = contradictory_bases(graph, 'place: String? @rename_from("city")', 'town: String? @rename_from("city")')
    branch, name = (graph, "place") if reverting == "main" else (dev, "town")
    branch.schema.apply(
        branch.schema.source.replace(f'{name}: String? @rename_from("city")', f'city: String? @rename_from("{name}")')
    )
    with pytest.raises(MergeConflict) as caught:
        graph.merge("dev")
    assert [conflict.kind for conflict in caught.value.conflicts] == ["schema_conflict"]
    assert graph.merge("dev", strategy=strategy).outcome == "merged"
    keeps = {"main": ("city", "town"), "dev": ("place", "city")}[reverting]
    assert people(graph, keeps[strategy == "theirs"])[0] == ("Ada", "Bonn")


@pytest.mark.parametrize("strategy", ["ours", "theirs"])
@pytest.mark.parametrize("dropper", ["main", "dev"])
def test_a_property_that_one_of_the_bases_dropped_gets_all_values_back(
    graph: Graph, strategy: Any, dropper: str
) -> None:
    pair = ("", 'town: String? @rename_from("city")')
    dev = contradictory_bases(graph, *(pair if dropper == "main" else pair[::-1]))
    keeper = dev if dropper == "main" else graph
    keeper.update("Person", where="name = $n", set={"town": "Rome"}, n="Bob")
    graph.update("Person", where="name = $n", set={"age": 1}, n="Ada")
    dev.update("Person", where="name = $n", set={"age": 2}, n="Cyd")
    with pytest.raises(MergeConflict):
        graph.merge("dev")
    merged = graph.merge("dev", strategy=strategy)
    assert people(graph, "age") == [("Ada", 1), ("Bob", 25), ("Cyd", 2)]
    if (strategy == "ours") == (dropper == "main"):
        assert "town" not in graph.schema.source
    else:
        assert people(graph, "town") == [("Ada", "Bonn"), ("Bob", "Rome"), ("Cyd", None)]
        assert merged.discarded == ()
    assert not graph.maintenance.check().findings


def test_values_of_the_base_that_do_not_fit_the_merged_schema_are_no_dead_end(graph: Graph) -> None:
    """A merge narrowed a type to which old values of the other branch do not fit; corrected, they can be merged."""
    whole = graph.branches.create("whole")
    change(whole, "age: I32?", "age: I64?")
    change(graph, "age: I32?", "age: F64?")
    graph.update("Person", where="name = $n", set={"age": 1.5}, n="Ada")
    dev = graph.branches.create("dev")
    dev.update("Person", where="name = $n", set={"age": 2.0}, n="Ada")
    dev.merge("whole", strategy="theirs")
    graph.insert("Person", {"name": "Dee"})
    with pytest.raises(MergeConflict, match=r"on 'main', age is 1\.5, which does not fit I64"):
        graph.merge("dev")
    graph.update("Person", where="name = $n", set={"age": 3.0}, n="Ada")
    with pytest.raises(MergeConflict) as caught:
        graph.merge("dev")
    assert [(one.kind, one.entity_id) for one in caught.value.conflicts] == [("divergent_update", "Ada")]
    trial = graph.branches.create("trial")
    trial.merge("dev", strategy="ours")
    assert people(trial, "age") == [("Ada", 3), ("Bob", 25), ("Cyd", None), ("Dee", None)]
    trial.update("Person", where="name = $n", set={"age": 4}, n="Bob")
    dev.update("Person", where="name = $n", set={"age": 5}, n="Cyd")
    assert trial.merge("dev").outcome == "merged"
    assert people(trial, "age") == [("Ada", 3), ("Bob", 4), ("Cyd", 5), ("Dee", None)]
    assert not graph.maintenance.check().findings


def test_branches_with_equal_schemas_merge_over_a_base_whose_values_do_not_fit(graph: Graph) -> None:
    whole = graph.branches.create("whole")
    change(whole, "age: I32?", "age: I64?")
    change(graph, "age: I32?", "age: F64?")
    graph.update("Person", where="name = $n", set={"age": 1.5}, n="Ada")
    dev = graph.branches.create("dev")
    for branch, age in ((graph, 2.0), (dev, 3.0)):
        branch.update("Person", where="name = $n", set={"age": age}, n="Ada")
        branch.merge("whole", strategy="theirs")
    dev.insert("Person", {"name": "Dee", "age": 7})
    (conflict,) = graph.merge("dev", dry_run=True).conflicts
    assert (conflict.kind, conflict.entity_id) == ("divergent_update", "Ada")
    graph.merge("dev", strategy="theirs")
    assert people(graph, "age") == [("Ada", 3), ("Bob", 25), ("Cyd", None), ("Dee", 7)]
    assert not graph.maintenance.check().findings
