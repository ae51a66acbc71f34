"""Neighbours of nodes: sorted lists for each edge type and direction, caches of these lists, and index lookups.

This package determines how neighbours are found; the meaning of a traversal is defined in
`operators`. Read `neighbours.py` first, which chooses where neighbours come from, and then
`neighbour_lists.py`.
"""
