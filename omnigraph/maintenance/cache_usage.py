"""Measure how much space the local cache directory uses, without contacting a store or writing anything."""

from pathlib import Path

from omnigraph.engine.query_caches import shared_caches


def read_cache_usage() -> tuple[int, str | None, int]:
    """Return the number of bytes in use, the cache directory, and its size limit in bytes."""
    disk_cache = shared_caches().disk
    if disk_cache is None:
        return 0, None, 0
    used_bytes = sum(_file_size(cached_file) for cached_file in disk_cache.directory.glob("*") if cached_file.is_file())
    return used_bytes, str(disk_cache.directory), disk_cache.budget


def _file_size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:  # the file was deleted after it was listed
        return 0
