"""How much of the cache directory of this machine is used. Never asks a store, nor writes."""

from pathlib import Path

from omnigraph.engine.cache import shared_caches


def cache_use() -> tuple[int, str | None, int]:
    """The bytes of the cache directory, where it is, and what it may grow to."""
    disk = shared_caches().disk
    if disk is None:
        return 0, None, 0
    used = sum(_size(one) for one in disk.directory.glob("*") if one.is_file())
    return used, str(disk.directory), disk.budget


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:  # gone since it was listed
        return 0
