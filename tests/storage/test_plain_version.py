"""A state that is read without Lance equals the state that Lance reads, and unusual files are left to Lance."""

import random
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import omnigraph
from omnigraph.errors import OmnigraphError
from omnigraph.history import manifest
from omnigraph.history.commit import Commit, SchemaRow, TableEntry
from omnigraph.history.state import READ_COLUMNS, BranchHead, GraphState, LogChunk, from_rows, to_rows
from omnigraph.storage import layout
from omnigraph.storage.effects import Effects
from omnigraph.storage.manifest_cell import create_cell, open_cell, swap
from omnigraph.storage.plain_version import PlainVersion, read_plain_version
from omnigraph.storage.store import Store, open_store
from omnigraph.values.table_key import TableKey

CELL = layout.MANIFEST
COMPAT = Path(__file__).parent.parent / "compat"
# Around the sizes at which Lance changes its choice of encodings, and the longest tail of a log.
SIZES = [(0, 0), (1, 0), (3, 1), (8, 20), (2, 60), (0, 97), (4, 110), (30, 127), (120, 5)]


def random_state(rng: random.Random, table_count: int, commit_count: int) -> GraphState:
    """Return a state like those of real graphs, with texts of all lengths."""

    def text(longest: int) -> str:
        return "".join(rng.choices('abé𝄞"\\ \n{:,', k=rng.randint(0, longest)))

    def ulid() -> str:
        return "".join(rng.choices("0123456789ABCDEFGHJKMNPQRSTVWXYZ", k=26))

    def entry(key: TableKey) -> TableEntry:
        branch = rng.choice([None, "main", text(9)])
        size = rng.choice([0, 1, rng.getrandbits(63)])
        return TableEntry(key, f"nodes/{ulid()}", rng.getrandbits(9), rng.getrandbits(64), ulid(), size, branch, 7)

    def commit(number: int) -> Commit:
        tables = {key: entry(key) for key in rng.sample(keys, min(len(keys), 2))}
        version = number if commit_count % 2 else rng.getrandbits(60)
        message = rng.choice([None, text(30), text(600)])
        return Commit(
            ulid(), (ulid(),), "load", rng.choice([None, "main", "b"]), version, 1, 2, text(5), message, None, tables
        )

    keys = [TableKey.of("node", f"T{number}") for number in range(table_count)]
    head = BranchHead(ulid(), "main", rng.getrandbits(3), nonce=rng.choice([None, text(40)]))
    chunks = tuple(LogChunk(f"_commits/{ulid()}", 64, ulid()) for _ in range(rng.randint(0, 9)))
    tail = tuple(commit(number) for number in range(commit_count))
    streams = {text(8): text(8) for _ in range(rng.randint(0, 3))}
    return GraphState(
        head, SchemaRow(ulid(), f"_schemas/{ulid()}"), {key: entry(key) for key in keys}, tail, chunks, streams
    )


def read_both(root: Path, location: str, version: int | None) -> tuple[PlainVersion | None, Any]:
    """Return a version as this package reads it and as Lance reads it."""
    plain_version = read_plain_version(str(root / location), version, READ_COLUMNS)
    return plain_version, open_cell(open_store(str(root)), location, version)


def assert_same(root: Path, location: str, version: int | None) -> None:
    plain_version, cell = read_both(root, location, version)
    assert plain_version is not None, (location, version)
    assert plain_version.read_rows(READ_COLUMNS) == cell.read_rows(READ_COLUMNS)
    assert (plain_version.version, plain_version.stamp) == (cell.version, cell.stamp)
    assert [plain_version.data_path] == [
        file.path for one in cell.dataset.get_fragments() for file in one.metadata.files
    ]


def write_states(root: Path, seed: int) -> list[GraphState]:
    rng, store = random.Random(seed), open_store(str(root), durability="os")
    states = [random_state(rng, *size) for size in SIZES]
    cell = create_cell(store, CELL, to_rows(states[0], 1))
    for version, state in enumerate(states[1:], start=2):
        cell = swap(store, cell, to_rows(state, version))
    return states


def test_states_of_all_sizes_are_read_without_lance(tmp_path: Path) -> None:
    states = write_states(tmp_path, 1)
    for version, state in enumerate(states, start=1):
        assert_same(tmp_path, CELL, version)
        plain_version = read_plain_version(str(tmp_path / CELL), version, READ_COLUMNS)
        assert plain_version is not None
        assert from_rows(plain_version.read_rows(READ_COLUMNS), version) == state
    assert_same(tmp_path, CELL, None)


@pytest.mark.full
@pytest.mark.parametrize("seed", range(2, 40))
def test_many_random_states_are_read_without_lance(tmp_path: Path, seed: int) -> None:
    for version, _ in enumerate(write_states(tmp_path, seed), start=1):
        assert_same(tmp_path, CELL, version)


@pytest.mark.parametrize("name", ["graph-100", "graph-keys"])
def test_graphs_of_earlier_releases_are_read_alike(tmp_path: Path, name: str) -> None:
    with tarfile.open(COMPAT / name / "graph.tar.gz") as archive:
        archive.extractall(tmp_path, filter="data")
    (root,) = tmp_path.iterdir()
    locations = [CELL, *(f"__branches/{one.name}" for one in sorted(root.glob("__branches/*"))[:6])]
    read_count = 0
    for location in locations:
        for file in sorted((root / location / "_versions").iterdir())[:6]:
            version = (1 << 64) - 1 - int(file.stem)
            plain_version, cell = read_both(root, location, version)
            if plain_version is not None:
                assert plain_version.read_rows(READ_COLUMNS) == cell.read_rows(READ_COLUMNS)
                read_count += 1
    assert read_count


def test_real_graph_is_read_without_lance(tmp_path: Path) -> None:
    graph = omnigraph.init(tmp_path / "g", "node Person { name: String @key }", durability="os")
    graph.insert("Person", {"name": "ada"}, message="first")
    graph.branches.create("review").insert("Person", {"name": "bob"})
    with graph.transaction() as txn:
        txn.insert("Person", {"name": "eve"})
    for location in (CELL, f"__branches/{graph.branches['review'].ulid}"):
        assert_same(tmp_path / "g", location, None)


# Damage --------------------------------------------------------------------------------------------


def outcome(store: Store, version: int | None) -> Any:
    """Return the state that a read-only handle sees, or its error."""
    try:
        return manifest.read_manifest(store, version=version).state
    except OmnigraphError as error:
        return type(error), error.message, error.advice


def damaged_copies(content: bytes, rng: random.Random, count: int) -> Iterator[bytes]:
    yield b""
    yield content[: len(content) // 2]
    yield bytes(len(content))
    for _ in range(count):
        position = rng.randrange(len(content))
        yield content[:position] + bytes([content[position] ^ 1 << rng.randrange(8)]) + content[position + 1 :]


def check_damage(root: Path, monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    rng, store = random.Random(3), open_store(str(root), effects=Effects(read_only=True))
    newest = min((root / CELL / "_versions").iterdir())
    (data,) = [one for one in (root / CELL / "data").iterdir() if one.name.encode() in newest.read_bytes()]
    for file in (newest, data):
        intact = file.read_bytes()
        for damaged in damaged_copies(intact, rng, count):
            file.write_bytes(damaged)
            found = outcome(store, None)
            with monkeypatch.context() as with_lance:
                with_lance.setattr(manifest, "read_plain_version", lambda *_: None)
                assert found == outcome(store, None)
        file.write_bytes(intact)


def test_damaged_files_lead_to_the_same_outcome_as_with_lance(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_states(tmp_path, 4)
    check_damage(tmp_path, monkeypatch, 12)


@pytest.mark.full
def test_any_flipped_bit_leads_to_the_same_outcome_as_with_lance(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_states(tmp_path, 5)
    check_damage(tmp_path, monkeypatch, 1500)


def test_newest_version_with_an_older_content_is_left_to_lance(tmp_path: Path) -> None:
    write_states(tmp_path, 6)
    newest, *_, oldest = sorted((tmp_path / CELL / "_versions").iterdir())
    newest.write_bytes(oldest.read_bytes())
    assert read_plain_version(str(tmp_path / CELL), None, READ_COLUMNS) is None


def test_only_read_only_stores_on_a_disk_avoid_lance(tmp_path: Path) -> None:
    state = write_states(tmp_path, 7)[-1]
    read_only, writable = open_store(str(tmp_path), effects=Effects(read_only=True)), open_store(str(tmp_path))
    plain, opened = manifest.read_manifest(read_only), manifest.read_manifest(writable)
    assert plain.state == opened.state == state
    assert isinstance(plain.cell.dataset, PlainVersion)
    assert not isinstance(opened.cell.dataset, PlainVersion)
    assert manifest.is_newest(plain)
    assert manifest.is_newest(opened)
