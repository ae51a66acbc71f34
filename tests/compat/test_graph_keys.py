"""Idempotency records of an earlier release match after classes and fields were renamed."""

import tarfile
from dataclasses import fields, is_dataclass
from datetime import timedelta
from pathlib import Path

import pytest

import omnigraph
from omnigraph.api.request_digest import _FORM_NAMES, _SPARSE_FORM_NAMES, canonical_text
from omnigraph.errors import InputError
from omnigraph.lang.query import plan
from omnigraph.values import PropertyType
from omnigraph.values.clock_and_ids import deterministic_ids
from tests.compat.make_keyed_graph import HERE, STATEMENTS, WRITTEN_AT, repeat_writes


@pytest.fixture
def root(tmp_path: Path) -> Path:
    with tarfile.open(HERE / "graph.tar.gz") as archive:
        archive.extractall(tmp_path, filter="data")
    return tmp_path / "graph"


def test_writes_of_an_earlier_release_are_recognised_by_their_keys(root: Path) -> None:
    with deterministic_ids(WRITTEN_AT + timedelta(hours=1), seed=102):
        graph = omnigraph.open(root)
        head = graph.head.id
        replayed = repeat_writes(graph)
        assert len(replayed) == len(STATEMENTS) + 3
        assert all(replayed.values()), replayed
        assert graph.refresh().head.id == head


def test_other_request_under_an_old_key_is_rejected(root: Path) -> None:
    with deterministic_ids(WRITTEN_AT + timedelta(hours=1), seed=102):
        graph = omnigraph.open(root)
        with pytest.raises(InputError, match="a different request"):
            graph.mutate('delete Person where name = "eve"', idempotency_key="delete")


def test_values_without_a_canonical_form_are_refused() -> None:
    with pytest.raises(TypeError, match="no canonical form"):
        canonical_text(object())


def test_every_class_of_a_write_plan_has_a_canonical_form() -> None:
    classes = (value for value in vars(plan).values() if isinstance(value, type))
    modules = {
        plan.__name__, plan.WritePlan.__module__, plan.Arithmetic.__module__, plan.FindPaths.__module__
    }  # fmt: skip
    in_plan = {cls for cls in classes if is_dataclass(cls) and cls.__module__ in modules}
    assert in_plan - {plan.UnionPlan, plan.SourcePlace} == (_FORM_NAMES | _SPARSE_FORM_NAMES).keys() - {PropertyType}
    for cls, names in (_FORM_NAMES | _SPARSE_FORM_NAMES).items():
        assert sum(one.compare for one in fields(cls)) == len(names.split()) - 1
