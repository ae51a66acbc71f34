"""Verify many files against their checksums in parallel."""

from concurrent.futures import ThreadPoolExecutor
from functools import partial

from omnigraph.errors import StorageError

from .checksums import FileChecksum, FileChecksums, find_mismatch
from .store import Store

CONCURRENT_VERIFICATIONS = 4  # number of files to verify in parallel; reading and checksumming release the GIL


def verify_files(store: Store, expected_checksums: FileChecksums) -> dict[str, str]:
    """Read files and compare them with their checksums; return a description of each fault, by file name."""
    with ThreadPoolExecutor(CONCURRENT_VERIFICATIONS, "verify") as pool:
        reasons = pool.map(partial(_find_file_fault, store), expected_checksums, expected_checksums.values())
        return {file_name: reason for file_name, reason in zip(expected_checksums, reasons, strict=True) if reason}


def _find_file_fault(store: Store, file_name: str, expected: FileChecksum) -> str | None:
    """Return a description of the fault in a file, or None if it is intact.

    An unreadable local file counts as damaged.
    """
    try:
        return find_mismatch(store, file_name, expected)
    except StorageError as error:
        if error.kind == "transient":
            raise
        return f"the file cannot be read ({error.reason or error.message})"
