"""Requirements of a write on the state it lands on, and their JSON form."""

from collections.abc import Callable
from pathlib import Path

import pytest

from omnigraph.errors import KeyConflict, OmnigraphError, PreconditionFailed, ReadSetConflict, VersionConflict
from omnigraph.publish.plan_json import requirement_from_json
from omnigraph.publish.requirements import (
    AbsentIds,
    ExpectedHead,
    Requirement,
    SameContent,
    SameHead,
    SameSchema,
    check_requirements,
)
from omnigraph.publish.write_txn import WriteTxn
from omnigraph.values.table_key import TableKey
from tests.rig.independent_writers import apart
from tests.rig.writes import PERSON, append, init_small, rewrite, write

CASES: list[tuple[Callable[[WriteTxn], Requirement], type[OmnigraphError]]] = [
    (lambda t: AbsentIds(PERSON, ("new", "other")), KeyConflict),
    (lambda t: SameHead(t.base.state.head.commit_id), ReadSetConflict),
    (lambda t: ExpectedHead(t.base.state.head.commit_id), PreconditionFailed),
    (lambda t: SameContent(PERSON, t.base.state.tables[PERSON].content_id, 2), VersionConflict),
]


def _txn(root: Path) -> WriteTxn:
    line = apart(root)
    return WriteTxn(line.store, "main", line.reload(), "", 0)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    init_small(tmp_path / "g")
    write(apart(tmp_path / "g"), append({"old": 1}))
    return tmp_path / "g"


@pytest.mark.parametrize(("make", "error"), CASES)
def test_requirement_holds_until_its_reads_change(
    root: Path, make: Callable[[WriteTxn], Requirement], error: type[OmnigraphError]
) -> None:
    one = make(_txn(root))
    again = requirement_from_json(one.to_json())
    assert again == one
    check_requirements([one, again], _txn(root))
    write(apart(root), append({"new": 1}))
    with pytest.raises(error):
        check_requirements([again], _txn(root))


def test_a_schema_is_compared_by_its_hash(root: Path) -> None:
    txn = _txn(root)
    check_requirements([requirement_from_json(SameSchema(txn.base.state.schema.hash).to_json())], txn)
    with pytest.raises(ReadSetConflict):
        check_requirements([SameSchema("sha256:other")], txn)


def test_maintenance_does_not_violate_requirements(root: Path) -> None:
    write(apart(root), append({"second": 1}))
    entry = _txn(root).base.state.tables[PERSON]
    assert write(apart(root), rewrite()) is not None
    now = _txn(root)
    assert now.base.state.tables[PERSON].lance_version != entry.lance_version
    check_requirements([SameContent(PERSON, entry.content_id, entry.version)], now)


def test_absence_of_an_empty_id_set_always_holds(root: Path) -> None:
    check_requirements([AbsentIds(PERSON, ())], _txn(root))


def test_missing_table_is_a_conflict(root: Path) -> None:
    with pytest.raises(ReadSetConflict):
        check_requirements([AbsentIds(TableKey("node:Gone"), ("a",))], _txn(root))
    with pytest.raises(VersionConflict):
        check_requirements([SameContent(TableKey("node:Gone"), "c", 1)], _txn(root))
