"""The staged input of a streamed load: the fragments that were written, and the columns that the rules need.

`StagedPiece` describes one piece of the input, and `StagedInput` describes all pieces in input order. Complete rows
exist only in the fragments.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from omnigraph.history.manifest import LoadedManifest
from omnigraph.ingest.input_pieces import InputPiece
from omnigraph.ingest.position_runs import unpack_positions
from omnigraph.ingest.problem import LoadProblem
from omnigraph.rules.delta import Positions
from omnigraph.values.table_key import TableKey


@dataclass(frozen=True, slots=True)
class WrittenFragment:
    """A fragment that no version references yet, and the input positions of its rows.

    `is_kept` is set if the rule columns of its rows are also in memory.
    """

    description: Mapping[str, Any]
    packed_positions: bytes
    is_kept: bool

    @property
    def positions(self) -> Positions:
        """The input positions of the rows."""
        return unpack_positions(self.packed_positions)

    @property
    def file_bytes(self) -> int:
        """The total size of the fragment's files."""
        return sum(data_file["file_size_bytes"] or 0 for data_file in self.description["files"])


@dataclass(slots=True)
class StagedType:
    """The records of one type: their number, their fragments, and the rule columns that are kept in memory."""

    record_count: int = 0
    truncated: bool = False
    ids_generated: bool = True
    fragments: list[WrittenFragment] = field(default_factory=list)
    kept_rows: list[pa.Table] = field(default_factory=list)
    kept_positions: list[Positions] = field(default_factory=list)

    def keep(self, rows: pa.Table, positions: Positions) -> None:
        """Keep the rule columns of some records in memory."""
        self.kept_rows.append(rows)
        self.kept_positions.append(positions)

    def extend(self, other: "StagedType") -> None:
        """Append the records of a later piece."""
        self.record_count += other.record_count
        self.truncated |= other.truncated
        self.ids_generated &= other.ids_generated
        self.fragments += other.fragments
        self.kept_rows += other.kept_rows
        self.kept_positions += other.kept_positions

    def all_kept_positions(self) -> Positions:
        """Return the positions of the records whose rule columns are in memory."""
        return np.concatenate(self.kept_positions) if self.kept_positions else np.zeros(0, np.int64)


@dataclass(slots=True)
class StagedPiece:
    """The records of one piece, by type, and the problems found in it."""

    types: dict[TableKey, StagedType] = field(default_factory=dict)
    problems: list[LoadProblem] = field(default_factory=list)
    line_count: int = 0


@dataclass(frozen=True, slots=True)
class StagedInput:
    """All records of an input, by type, and the problems found while reading it."""

    pieces: Sequence[InputPiece]
    line_counts: Mapping[int, int]
    types: Mapping[TableKey, StagedType]
    problems: Sequence[LoadProblem]
    base: LoadedManifest

    def is_usable_on(self, manifest: LoadedManifest) -> bool:
        """Return whether the fragments can be published on a newer manifest.

        They cannot be published if a cleanup may have removed them, or if a table was replaced by another table.
        """
        base_tables, new_tables = self.base.state.tables, manifest.state.tables
        return manifest.state.head.gc_epoch == self.base.state.head.gc_epoch and all(
            table_key in new_tables and new_tables[table_key].location == base_tables[table_key].location
            for table_key in self.types
        )

    @property
    def written_bytes(self) -> int:
        """The total size of all fragments."""
        return sum(fragment.file_bytes for staged in self.types.values() for fragment in staged.fragments)


def combine_pieces(
    pieces: Sequence[InputPiece], staged_pieces: Sequence[StagedPiece | None], base: LoadedManifest
) -> StagedInput:
    """Combine the pieces of an input in input order. None represents a piece that was not read."""
    types: dict[TableKey, StagedType] = {}
    problems: list[LoadProblem] = []
    line_counts: dict[int, int] = {}
    for piece, staged_piece in _read_pieces(pieces, staged_pieces):
        for table_key, staged_type in staged_piece.types.items():
            types.setdefault(table_key, StagedType()).extend(staged_type)
        problems += staged_piece.problems
        line_counts[piece.number] = staged_piece.line_count
    return StagedInput(pieces, line_counts, dict(sorted(types.items())), problems, base)


def _read_pieces(
    pieces: Sequence[InputPiece], staged_pieces: Sequence[StagedPiece | None]
) -> Iterator[tuple[InputPiece, StagedPiece]]:
    for piece, staged_piece in zip(pieces, staged_pieces, strict=True):
        if staged_piece is not None:
            yield piece, staged_piece
