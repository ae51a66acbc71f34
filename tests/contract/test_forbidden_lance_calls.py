"""The package makes no Lance call that could destroy or move data it does not see."""

from functools import cache
from pathlib import Path

import pytest

from tests.contract.lance_rules import Use, forbidden_uses

PACKAGE = Path(__file__).parent.parent.parent / "omnigraph"

# (file, function, name): each use that is meant, and why it is harmless.
ALLOWED = {
    # A new dataset: there is nothing yet that could be lost.
    ("storage/manifest_cell.py", "_create_dataset", "commit"),
    ("storage/table.py", "create_table", "write_dataset"),
    # An empty local dataset with the fields of a table: files for S3 are written there first.
    ("storage/data_writer.py", "_create_local_mirror", "commit"),
    # A plain dataset of an export, outside of any graph, in a folder that was empty.
    ("storage/plain_datasets.py", "commit_plain_dataset", "commit"),
    # Arrow rows, before they become a dataset.
    ("storage/manifest_cell.py", "create_cell", "replace_schema_metadata"),
    ("storage/manifest_cell.py", "swap", "replace_schema_metadata"),
    # The two commits: the strict swap of a cell, and the detached version of a table.
    ("storage/manifest_cell.py", "_commit_strictly", "commit"),
    ("storage/table.py", "_commit_detached", "commit"),
    # A digest.
    ("storage/pending_blobs.py", "PendingBlobs._copy", "update"),
    ("storage/pending_blobs.py", "PendingBlobs._link", "update"),
    ("storage/pending_blobs.py", "PendingBlobs._refer", "update"),
    # A control object.
    ("storage/s3.py", "S3Backend.remove", "delete"),
}


@cache
def uses() -> list[Use]:
    found = []
    for path in sorted(PACKAGE.rglob("*.py")):
        found += forbidden_uses(path.relative_to(PACKAGE).as_posix(), path.read_text())
    return found


def test_only_permitted_lance_calls_are_used() -> None:
    assert [one for one in uses() if one.permit not in ALLOWED] == []


def test_every_permission_is_still_used() -> None:
    assert {one.permit for one in uses()} >= ALLOWED


@pytest.mark.parametrize(
    "defect",
    [
        "table.dataset.cleanup_old_versions()",
        "dataset.optimize.compact_files()",
        "dataset.optimize.optimize_indices()",
        "d.cleanup_old_versions(older_than=x)",
        "table.dataset.delete('id = 1')",
        "cell.dataset.update({'a': '1'})",
        "store.open('x').dataset.insert(rows)",
        "ds.restore()",
        "anything.merge_insert('id')",
        "lance.write_dataset(rows, uri)",
        "from lance import write_dataset as w",
        "from lance.dataset import write_dataset",
        "table.dataset.create_index('v', 'IVF_FLAT')",
        "x.create_scalar_index('id', 'BTREE')",
        "x.add_columns({})",
        "x.alter_columns({})",
        "x.dataset.drop_columns([])",
        "x.dataset.create_branch('b')",
        "x.dataset.tags.create('t', 1)",
        "x.dataset.tags.delete('t')",
        "x.dataset.branches.create('t', 1)",
        "x.truncate_table()",
        "x.update_config({})",
        "x.dataset.replace_schema_metadata({})",
        "lance.LanceDataset.commit(uri, op)",
        "from lance import LanceDataset\nLanceDataset.commit(uri, op)",
        "LanceDataset.commit_batch(uri, ops)",
        "Compaction.commit(ds, results)",
        "Compaction.execute(ds, {})",
        "clean = table.dataset.cleanup_old_versions",
        "getattr(table, 'delete')('x')",
        "def f():\n    async def g():\n        return lambda d: d.compact_files()",
    ],
)
def test_a_planted_call_is_caught(defect: str) -> None:
    assert forbidden_uses("engine/run_query.py", defect) != []


@pytest.mark.parametrize(
    "name", ["delete", "update", "insert", "restore", "create_branch", "drop_columns", "tags.create"]
)
def test_forbidden_name_outside_datasets_is_caught(name: str) -> None:
    assert forbidden_uses("storage/table.py", f"x = table.handle\nx.{name}('a')") != []


def test_a_permission_is_for_one_function_only() -> None:
    planted = "def create_table():\n    lance.write_dataset(x)\n\ndef other():\n    lance.write_dataset(x)"
    found = forbidden_uses("storage/table.py", planted)
    assert [one.permit in ALLOWED for one in found] == [True, False]


@pytest.mark.parametrize(
    "innocent",
    [
        "facts.update(more)\nseen.insert(0, x)\nline.delete(name)",
        "graph.revisions.commit(x)\nline.commit()",
        "graph.branches.create('x')\ngraph.tags.delete('x')\nbranches.create_branch(store, 'x')",
        "rows.drop_columns(['x']).replace_schema_metadata({})",
        "LanceOperation.Update(update_mode='')\nfragment.delete_rows([1])",
        "from omnigraph.storage.table import commit",
        "getattr(x, 'name')",
        "delete = 'merge_insert'",
    ],
)
def test_harmless_code_is_accepted(innocent: str) -> None:
    assert forbidden_uses("publish/publish.py", innocent) == []
