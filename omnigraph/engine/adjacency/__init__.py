"""Neighbours of nodes: sorted lists for each edge type and direction, caches of these lists, and index lookups.

This package finds neighbours; the meaning of a traversal is defined in `operators`. Read `neighbours.py` first, which
chooses between lists and lookups, and then `neighbour_lists.py`.
"""
