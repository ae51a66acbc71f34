"""Everything durable: Lance tables, control objects, and the gateway for durable effects.

The only package that imports lance and obstore. It knows tables, rows and files; what a commit or
a branch means belongs to `history`. Read `store.py`, `table.py` and `cell.py` first.
"""

import os

# On a disk Lance would write a hint of the newest version beside every new one. The hint is never
# synced, nothing reads it there, and it doubles the time of a swap. Lance reads this variable once.
os.environ.setdefault("LANCE_USE_VERSION_HINT", "0")
