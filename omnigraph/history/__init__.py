"""Graph history: commits, the log, refs, snapshots, revisions, diffs and changes.

A table version never changes. The branch manifest is the only pointer that moves, and only `publish` moves it. This
package does not interpret row contents and does not import lance. Start with `commit.py`, `state.py` and
`commit_log.py`, then read `snapshot.py` and `diff.py`.
"""
