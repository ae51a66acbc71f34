"""Sets of ids in NumPy arrays, with lookups of whole columns: see `packed_ids`, then `hashed_ids` for long ids.

Loads use these sets to check whether the endpoints of edges exist. A set may be built in memory or mapped from files; a
lookup is always exact. This package never reads tables.
"""
