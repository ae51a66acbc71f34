"""What a graph is over time: states, commits, branches, and the one way to publish.

A table version never changes; the manifest of a branch is the only pointer that moves. Nothing
here knows what a row means, and nothing here imports lance.
"""
