"""Graph history: commits, the log, refs, snapshots, revisions, diffs and changes.

A table version never changes; the manifest of a branch is the only pointer that moves, and only
`publish` moves it. Nothing here knows what a row means, and nothing here imports lance.
Read first: `commit.py`, `state.py`, `log.py`, then `snapshot.py` and `diff.py`.
"""
