"""Random programs of writes, compactions and merges on blobs, compared with a dict of bytes."""

import io
import random
from pathlib import Path
from typing import Any

import pytest

import omnigraph
from omnigraph import errors
from omnigraph.storage import large_blobs
from tests.api.blobs.conftest import SCHEMA

# Around the sizes at which Lance changes the form of a blob; few sizes, so that many blobs have the same.
SIZES = (0, 1, 64 << 10, (64 << 10) + 1, 4 << 20, (4 << 20) + 1, (4 << 20) + 1)
SLUGS = ("a", "b", "c", "d")
Model = dict[str, bytes | None]


class Program:
    """A graph and what it must contain."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.random = random.Random(seed)
        self.folder = folder
        self.graph = omnigraph.init(folder / "g", SCHEMA, durability="os")
        self.model: Model = {}

    def content(self) -> bytes | None:
        return None if self.random.random() < 0.1 else self.random.randbytes(self.random.choice(SIZES))

    def source(self, content: bytes | None) -> Any:
        """Return a blob in one of its forms."""
        form = self.random.choice(["bytes", "file", "path"])
        if content is None or form == "bytes":
            return content
        if form == "file":
            return io.BytesIO(content)
        path = self.folder / f"source{self.random.randrange(10**9)}"
        path.write_bytes(content)
        return path

    def upsert(self) -> None:
        chosen = {slug: self.content() for slug in self.random.sample(SLUGS, 2)}
        self.graph.upsert("Doc", *({"slug": slug, "body": self.source(blob)} for slug, blob in chosen.items()))
        self.model |= chosen

    def put(self) -> None:
        slug, content = self.random.choice(SLUGS), self.content()
        if slug in self.model:
            self.graph.put_blob("Doc", slug, "body", self.source(content))
            self.model[slug] = content

    def carry(self) -> None:
        self.graph.update("Doc", where="slug != ''", set={"note": str(self.random.random())})

    def delete(self) -> None:
        slug = self.random.choice(SLUGS)
        self.graph.delete("Doc", where="slug = $s", s=slug)
        self.model.pop(slug, None)

    def optimize(self) -> None:
        before = self.row_ids()
        self.graph.maintenance.optimize()
        assert self.row_ids() == before

    def row_ids(self) -> dict[str, int]:
        rows = self.graph.refresh().table("Doc").to_table(columns=["id"], with_row_id=True)
        return dict(zip(rows["id"].to_pylist(), rows["_rowid"].to_pylist(), strict=True))

    def transaction(self) -> None:
        slug, first, second = self.random.choice(SLUGS), self.content(), self.content()
        with self.graph.transaction() as tx:
            tx.upsert("Doc", {"slug": slug, "body": self.source(first)})
            tx.update("Doc", where="slug != ''", set={"note": "tx"})
            if self.random.random() < 0.5:
                tx.update("Doc", where="slug = $s", set={"body": self.source(second)}, s=slug)
                first = second
        self.model[slug] = first

    def merge(self) -> None:
        """Change a blob on a branch and a note on main, then merge: both changes stay."""
        slug, content = self.random.choice(SLUGS), self.content()
        if slug not in self.model:
            return
        review = self.graph.branches.create("review")
        review.put_blob("Doc", slug, "body", self.source(content))
        self.carry()
        self.graph.merge("review", delete_branch=True)
        self.model[slug] = content

    def check(self) -> None:
        slugs = sorted(slug for (slug,) in self.graph.query("match { $d: Doc } return { $d.slug }").to_records())
        assert slugs == sorted(self.model)
        for slug, content in self.model.items():
            if content is None:
                with pytest.raises(errors.EntityNotFound):
                    self.graph.blob("Doc", slug, "body")
            else:
                self.check_ranges(self.graph.blob("Doc", slug, "body"), content)

    def check_ranges(self, blob: omnigraph.Blob, content: bytes) -> None:
        assert blob.size == len(content)
        assert blob.read() == content
        if content:
            start = self.random.randrange(len(content))
            stop = self.random.randint(start + 1, len(content) + 5)
            assert blob.read(start, stop) == content[start:stop]
            assert b"".join(blob.iter_chunks(1_000_003, start=start)) == content[start:]


@pytest.mark.full
@pytest.mark.parametrize("seed", range(3))
def test_random_programs_keep_every_byte(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    monkeypatch.setattr(large_blobs, "HEAVY_BLOB_BYTES", 4 << 20)
    program = Program(tmp_path, seed)
    steps = [program.upsert, program.put, program.carry, program.delete, program.transaction, program.merge]
    for number in range(40):
        step = program.optimize if number % 8 == 7 else program.random.choice(steps)
        step()
        program.check()
    assert not program.graph.maintenance.check().findings
