"""Schema apply: migrate a graph and its data to a new schema in one commit.

This package contains the schema proposal, the check of existing rows, and the staging of changed tables. The pure
comparison of two schemas lives in `lang/schema/migrate`. Read `proposal.py` first, then `apply.py`.
"""
