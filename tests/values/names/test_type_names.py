"""Generated names of types and properties: rejected with a span, or they work everywhere."""

from pathlib import Path

import pytest

import omnigraph
from omnigraph.api.graph import Graph
from omnigraph.errors import LanguageError
from omnigraph.lang.schema import diagnose_schema
from omnigraph.values.name_rules import MAX_NAME_BYTES
from tests.rig.depth import repeats
from tests.rig.plugin import S3
from tests.values.names.generated_names import COUNT, identifier_of, sample_names
from tests.values.names.name_lifecycle import check_at_rest

LIMITS = [f"T{'x' * (MAX_NAME_BYTES - 2)}", "Tnull", "Tselect", "T_refs"]


def _accepted(names: list[str]) -> list[str]:
    """The names that a type can have; all others are refused, each with its place in the text."""
    accepted: dict[str, str] = {}
    for name in (*names, *map(identifier_of, names)):
        catalog, errors = diagnose_schema(_declare(name))
        if catalog is None:
            assert all(error.start is not None and len(error.message) < 1000 for error in errors)
        elif [node.name for node in catalog.nodes] == [name]:
            accepted.setdefault(name.lower(), name)
    return list(accepted.values())


def _declare(name: str, header: str = "") -> str:
    return f"node {header or name} {{ key: String @key  p{name}: I64? @index }}"


def _check_works(root: str, names: list[str]) -> Graph:
    """Declare types of all names, write, index, query, rename, read again."""
    graph = omnigraph.init(root, "\n".join(map(_declare, names)), durability="os")
    with graph.transaction() as work:
        for number, name in enumerate(names):
            work.insert(name, {"key": "k", f"p{name}": number})
    graph.maintenance.ensure_indices()
    for number, name in enumerate(names):
        assert graph.nodes(name).where(**{f"p{name}": number}).count() == 1
    assert len(list(graph.export())) == len(names)
    headers = [f'Renamed{number} @rename_from("{name}")' for number, name in enumerate(names)]
    graph.schema.apply("\n".join(map(_declare, names, headers)))
    assert all(graph.node(f"Renamed{number}", "k") for number in range(len(names)))
    check_at_rest(graph)
    return graph


def test_the_limit_is_the_same_for_types_and_properties() -> None:
    assert diagnose_schema(_declare("T" * (MAX_NAME_BYTES - 1)))[1] == ()
    (error,) = diagnose_schema(_declare("T" * MAX_NAME_BYTES))[1]
    assert "cannot be used as a property name: it is 201 bytes long, but at most 200" in error.message
    (error,) = diagnose_schema(f"interface {'I' * 5000} {{ x: I64? }}")[1]
    assert (error.line, error.column) == (1, 11)
    with pytest.raises(LanguageError, match="cannot be used as a type name"):
        omnigraph.init("unused", f"node A {{}} edge {'E' * 201}: A -> A")


def test_some_names_of_types_work_on_a_disk(tmp_path: Path) -> None:
    accepted = _accepted(sample_names(150))
    assert len(accepted) > 40
    _check_works(str(tmp_path / "g"), [*LIMITS, *accepted[::8]])


@pytest.mark.full
@pytest.mark.timeout(1800)
def test_many_names_of_types_work_on_a_disk(tmp_path: Path) -> None:
    accepted = _accepted(sample_names(min(COUNT, repeats(400))))
    for start in range(0, len(accepted), 100):
        _check_works(str(tmp_path / f"g{start}"), accepted[start : start + 100])


def test_the_longest_names_of_types_work_on_s3_and_in_copies(tmp_path: Path, s3: S3) -> None:
    graph = _check_works(s3.url, LIMITS[:2])
    graph.maintenance.copy_to(tmp_path / "copy")
    assert omnigraph.open(tmp_path / "copy").node("Renamed0", "k") is not None
