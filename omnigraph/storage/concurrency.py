"""The number of tables and files that maintenance processes at once."""

import os

DEFAULT_CONCURRENT_TABLES = 8  # tables; Lance uses all cores for a single table


def maintenance_concurrency() -> int:
    """Return how many tables to process at once, as set by `OMNIGRAPH_MAINTENANCE_CONCURRENCY` (8 by default)."""
    setting = os.environ.get("OMNIGRAPH_MAINTENANCE_CONCURRENCY", "").strip()
    table_count = int(setting) if setting.isdecimal() else 0
    return table_count or DEFAULT_CONCURRENT_TABLES
