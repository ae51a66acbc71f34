"""Determine how many tables maintenance can process, and how many files it can remove, at the same time."""

import os

DEFAULT_CONCURRENT_TABLES = 8  # default number of tables; it is low because Lance already uses all cores for one table


def maintenance_concurrency() -> int:
    """Return the number of tables to process in parallel, from `OMNIGRAPH_MAINTENANCE_CONCURRENCY` (default 8)."""
    setting = os.environ.get("OMNIGRAPH_MAINTENANCE_CONCURRENCY", "").strip()
    table_count = int(setting) if setting.isdecimal() else 0
    return table_count or DEFAULT_CONCURRENT_TABLES
