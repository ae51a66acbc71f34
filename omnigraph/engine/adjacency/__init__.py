"""Neighbours of nodes: sorted lists per edge type and direction, caches of these lists, and index probes.

Owns how neighbours are found; the meaning of a traversal is defined in `operators`. Read first:
`neighbours.py` (which chooses where neighbours come from), then `neighbour_lists.py`.
"""
