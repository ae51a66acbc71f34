"""Durable storage: Lance tables, control objects, and the gateway for durable effects.

This is the only package that imports lance and obstore. Storage deals with tables, rows and files;
the meaning of commits and branches belongs to `history`. Read `store.py`, `table.py` and `manifest_cell.py`
first.
"""

import os

# On a local disk, Lance would write a version hint beside every new version. The hint is never synced,
# nothing reads it, and it doubles the time of a swap. Lance reads this variable only once.
os.environ.setdefault("LANCE_USE_VERSION_HINT", "0")
