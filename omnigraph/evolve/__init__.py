"""Schema apply: migrate a graph with data to another schema, as one commit.

Owns the proposal, the check of existing rows, and the staging of changed tables. The comparison of
two schemas is pure and lives in `lang/schema/migrate`. Read first: `proposal.py`, then `apply.py`.
"""
