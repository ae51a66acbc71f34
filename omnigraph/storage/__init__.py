"""Durable storage: Lance tables, control objects, and the gateway for durable writes.

This is the only package that imports lance and obstore. It handles tables, rows and files, whereas `history` defines
what commits and branches mean. Start with `store.py`, `table.py` and `manifest_cell.py`.
"""

import os

# On a local disk, Lance writes a version hint next to every new version. The hint is never synced or read, and it
# doubles the time a swap takes. Lance reads this environment variable only once, so set it before the import.
os.environ.setdefault("LANCE_USE_VERSION_HINT", "0")
