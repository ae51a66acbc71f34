"""Durable storage: Lance tables, control objects, and the gateway for durable writes.

This is the only package that imports lance and obstore. Storage deals with tables, rows and files;
`history` defines the meaning of commits and branches. Read `store.py`, `table.py` and `manifest_cell.py`
first.
"""

import os

# On a local disk, Lance would write a version hint next to every new version. The hint is never synced, is never read,
# and doubles the time a swap takes. Lance reads this environment variable only once.
os.environ.setdefault("LANCE_USE_VERSION_HINT", "0")
