"""Everything durable: Lance tables, control objects, and the one door that effects pass through.

The only package that imports lance and obstore. It knows tables, rows and files; what a commit or
a branch means is the business of `history`.
"""

import os

# On a disk Lance would write, beside every new version, a hint of which one is the newest: never
# synced, read by nobody there, and it doubles the time of a swap. Lance looks at this only once.
os.environ.setdefault("LANCE_USE_VERSION_HINT", "0")
