"""Placeholders of equal bytes: those of an abandoned write do not hide those of a write that still runs."""

import hashlib
from pathlib import Path

from omnigraph.storage.blob_placeholders import AcceptedContents, ContentRange, content_range

CONTENT = b"the same bytes in two writes"


def accept(folder: Path) -> tuple[AcceptedContents, bytes]:
    """A write that has accepted the content, and its placeholder."""
    folder.mkdir()
    (folder / "1").write_bytes(CONTENT)
    accepted = AcceptedContents(folder=str(folder))
    content = ContentRange(folder / "1", 0, len(CONTENT))
    return accepted, accepted.register(hashlib.sha256(CONTENT).digest(), content)


def test_the_bytes_of_a_running_write_are_read_after_another_was_abandoned(tmp_path: Path) -> None:
    first, _ = accept(tmp_path / "first")
    second, placeholder = accept(tmp_path / "second")
    first.abandon()
    content = content_range(placeholder)
    assert content is not None
    assert b"".join(content.read_blocks()) == CONTENT
    second.close()
