"""Compares annotations: texts for readers may change at any time, opaque annotations may not."""

from collections.abc import Iterator

from omnigraph.lang.schema.catalog import Note

from .steps import Step, unsupported

# Only people read these; any other annotation may have a meaning for programs.
FOR_READERS = frozenset({"description", "instruction"})


def texts_differ(old: tuple[Note, ...], new: tuple[Note, ...]) -> bool:
    """Return whether a description or an instruction changed."""
    return _for_readers(old) != _for_readers(new)


def refused_notes(entity: str, old: tuple[Note, ...], new: tuple[Note, ...]) -> Iterator[Step]:
    """Refuse a change of any other annotation, naming all that differ."""
    was, now = _opaque(old), _opaque(new)
    if was != now:
        names = ", ".join(f"@{name}" for name in sorted({note.name for note in was ^ now}))
        yield unsupported("OG-BC-105", entity, f"{names} changed, but its meaning is unknown")


def _for_readers(notes: tuple[Note, ...]) -> set[Note]:
    return {note for note in notes if note.name in FOR_READERS}


def _opaque(notes: tuple[Note, ...]) -> set[Note]:
    return {note for note in notes if note.name not in FOR_READERS}
