"""Graph history: states, commits, branches, and `publish`, the only way to make a write visible.

A table version never changes; the manifest of a branch is the only pointer that moves. Nothing
here knows what a row means, and nothing here imports lance.
"""
