"""Report the progress of a streamed load in bytes, each time a piece is complete."""

from collections.abc import Callable, Sequence

from omnigraph.ingest.input_pieces import InputPiece

ProgressCallback = Callable[[int, int], object]


def piece_progress(pieces: Sequence[InputPiece], progress: ProgressCallback | None) -> Callable[[InputPiece], object]:
    """Return a function that reports to the caller that a piece is complete."""
    sizes = _piece_sizes(pieces)
    total_bytes, done_bytes = sum(sizes.values()), 0

    def report(piece: InputPiece) -> None:
        nonlocal done_bytes
        done_bytes += sizes[piece.number]
        if progress is not None:
            progress(done_bytes, total_bytes)

    return report


def _piece_sizes(pieces: Sequence[InputPiece]) -> dict[int, int]:
    """Return the number of bytes in each piece. All pieces of a Parquet file count as equally large."""
    pieces_by_path: dict[str, int] = {}
    for piece in pieces:
        pieces_by_path[piece.input_file.path] = pieces_by_path.get(piece.input_file.path, 0) + 1
    return {piece.number: piece.input_file.size // pieces_by_path[piece.input_file.path] for piece in pieces}
