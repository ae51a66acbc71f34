"""Usage of the local cache directory. Never contacts a store and never writes."""

from pathlib import Path

from omnigraph.engine.cache import shared_caches


def cache_use() -> tuple[int, str | None, int]:
    """Return the bytes in use, the cache directory, and its size limit in bytes."""
    disk = shared_caches().disk
    if disk is None:
        return 0, None, 0
    used = sum(_size(one) for one in disk.directory.glob("*") if one.is_file())
    return used, str(disk.directory), disk.budget


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:  # deleted since it was listed
        return 0
