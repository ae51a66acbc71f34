"""How many tables and files maintenance works on at once."""

import os

DEFAULT_CONCURRENT_TABLES = 8  # tables; Lance uses all cores for a single table


def maintenance_concurrency() -> int:
    """Return how many tables run at once: `OMNIGRAPH_MAINTENANCE_CONCURRENCY`, else 8."""
    setting = os.environ.get("OMNIGRAPH_MAINTENANCE_CONCURRENCY", "").strip()
    table_count = int(setting) if setting.isdecimal() else 0
    return table_count or DEFAULT_CONCURRENT_TABLES
