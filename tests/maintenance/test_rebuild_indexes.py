"""A damaged index is named by `check`, with the command that rebuilds it; afterward all is well."""

import re
import shlex
import warnings
from pathlib import Path

import pytest

import omnigraph
from omnigraph.api.graph import Graph
from omnigraph.errors import IndexUnreadable, InputError
from tests.cli.conftest import Program
from tests.maintenance.conftest import again
from tests.maintenance.test_check_damage import FULL, look, scramble
from tests.maintenance.test_lost_indexes import answers, docs, index_file, indexed

__all__ = ["docs", "indexed"]  # fixtures
KINDS = (
    ("auxiliary.idx", "vector", "place"),
    ("ngram_postings.lance", "ngram", "code"),
    ("part_0_invert.lance", "full-text", "body"),
    ("words.lance", "full-text", "body"),
)


def segments(graph: Graph) -> dict[str, set[str]]:
    """The segments of every index of Doc, by column and kind."""
    found = again(graph).table("Doc").describe_indices()
    return {f"{index.field_names[0]} {index.index_type}": {str(one.uuid) for one in index.segments} for index in found}


@pytest.mark.parametrize(
    ("name", "kind", "column"),
    [KINDS[0], KINDS[2], *(pytest.param(*one, marks=FULL) for one in KINDS)],
)
def test_check_names_the_index_and_the_command_that_rebuilds_it(
    docs: Graph, shell: Program, name: str, kind: str, column: str
) -> None:
    before, old = answers(docs), segments(docs)
    scramble(index_file(docs, name))
    (found,) = look(docs).findings
    assert f"the {kind} index on column '{column}' of node type 'Doc'" in found.reason
    assert (found.kind, found.type_key, found.column, found.index_kind) == ("index", "node:Doc", column, kind)
    command = f"omnigraph ensure-indices {shlex.quote(docs.uri)} --rebuild --index Doc.{column}"
    assert f"`{command}`" in (found.hint or "")
    done = shell(*shlex.split(command)[1:])
    assert done.code == 0
    assert re.search(rf"^node:Doc: built the index on (fulltext:)?{column}$", done.out, re.MULTILINE)
    assert look(docs).findings == ()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert answers(docs) == before
    new = segments(docs)
    assert {index for index in old if old[index] != new[index]} == {
        index for index in old if index.startswith(f"{column} ")
    }


def test_index_that_cannot_be_read_is_named_with_type_and_column(tmp_path: Path, shell: Program) -> None:
    graph = _open(tmp_path, "node Thing { name: String @key  kind: String? @index }")
    graph.load({"Thing": [{"name": f"t{n}", "kind": f"k{n % 5}"} for n in range(50)]}, mode="append")
    graph.maintenance.ensure_indices()
    dataset = graph.table("Thing")
    (segment,) = next(one for one in dataset.describe_indices() if one.field_names == ["kind"]).segments
    for path in Path(graph.uri).glob(f"*/*/_indices/{segment.uuid}/*"):
        scramble(path)
    told = shell("check", graph.uri)
    assert told.code == 1
    assert "index (main node:Thing): " in told.out
    assert "the btree index on column 'kind' of node type 'Thing'" in told.out
    assert f"omnigraph ensure-indices {graph.uri} --rebuild --index Thing.kind" in told.err
    assert "cleanup" not in told.out + told.err
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", IndexUnreadable)
        assert again(graph).query('match { $t: Thing { kind: "k1" } } return { count($t) as n }').to_records() == [
            (10,)
        ]
    assert shell("ensure-indices", graph.uri, "--rebuild").code == 0
    assert shell("check", graph.uri).code == 0


def test_other_branches_and_tags_get_their_own_advice(docs: Graph) -> None:
    docs.branches.create("side")
    docs.tag("v1")
    scramble(index_file(docs, "ngram_postings.lance"))
    (found,) = look(docs).findings
    assert found.branches == ("main", "side", "tag v1")
    commands = re.findall(r"`omnigraph (ensure-indices [^`]+)`", found.hint or "")
    assert [one.rpartition("--index ")[2] for one in commands] == ["Doc.code", "Doc.code --branch side"]
    again(docs).maintenance.ensure_indices(rebuild=["Doc.code"])
    again(docs).maintenance.ensure_indices(rebuild=True, branch="side")
    (left,) = look(docs).findings
    assert left.branches == ("tag v1",) or left.branch == "tag v1"
    assert "the indexes on a tag cannot be rebuilt" in (left.hint or "")
    docs.tags.delete("v1")
    assert look(docs).findings == ()


def test_wrong_names_are_refused_and_nothing_is_written(docs: Graph, shell: Program) -> None:
    head = docs.head.id
    for names, message in (
        (["Ghost"], "unknown type 'Ghost'"),
        (["Doc.ghost"], "node type 'Doc' has no index on column 'ghost'"),
        (["edge:Doc"], "unknown edge type 'Doc'"),
    ):
        with pytest.raises(InputError, match=message):
            docs.maintenance.ensure_indices(rebuild=names)
    with pytest.raises(InputError, match="must be a list of names"):
        docs.maintenance.ensure_indices(rebuild="Doc.age")
    assert shell("ensure-indices", docs.uri, "--index", "Doc.age").code == 2
    assert again(docs).head.id == head
    done = docs.maintenance.ensure_indices(rebuild=["Doc.age", "node:Doc.name"])
    assert done.indexes == {"node:Doc": ["age", "name"]}


def test_rebuild_of_an_empty_table_removes_its_indexes(docs: Graph) -> None:
    docs.delete("Doc", where="age >= 0")
    scramble(index_file(docs, "ngram_postings.lance"))
    docs.maintenance.ensure_indices(rebuild=True)
    assert look(docs).findings == ()
    docs.load({"Doc": [{"name": "new", "code": "number 12", "age": 7}]}, mode="append")
    docs.maintenance.ensure_indices()
    assert again(docs).query("match { $d: Doc  $d.age = 7 } return { $d.name }").to_lists() == [["new"]]
    assert look(docs).findings == ()


def _open(tmp_path: Path, schema: str) -> Graph:
    return omnigraph.init(tmp_path / "g", schema, durability="os")
