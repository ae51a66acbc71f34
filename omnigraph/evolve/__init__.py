"""Schema apply: migrate a graph and its data to a new schema in one commit.

This package contains the schema proposal, the check of existing rows, and the staging of changed tables. The comparison
of two schemas, which does not access a graph, is in `lang/schema/migrate`. Read `proposal.py` first, then `apply.py`.
"""
