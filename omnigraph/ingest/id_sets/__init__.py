"""Sets of ids, stored in NumPy arrays so that all ids in a column can be looked up at once.

Loads use these sets to check whether the endpoints of edges exist. A set is built in memory or mapped from files.
Lookups are always exact. Start with `packed_ids`, then read `hashed_ids`, which handles long ids. This package never
reads tables.
"""
