"""Schema apply: migrate a graph and its data to a new schema in one commit.

This package plans schema changes, checks existing rows against them, and stages the changed tables. The code that
compares two schemas without accessing a graph is in `lang/schema/migrate`. Read `proposal.py` first, then `apply.py`.
"""
