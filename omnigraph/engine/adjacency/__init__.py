"""Neighbours of nodes: sorted lists for each edge type and direction, caches of these lists, and index lookups.

This package determines how neighbours are found; the meaning of a traversal is defined in
`operators`. Start with `neighbours.py`, which chooses how neighbours are found, and then read `neighbour_lists.py`.
"""
