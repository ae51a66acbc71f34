"""Neighbour lookup: sorted lists per edge type and direction, caches for these lists, and index lookups.

This package only finds neighbours; `operators` defines the semantics of a traversal. Start with `neighbours.py`, which
chooses between lists and lookups, then read `neighbour_lists.py`.
"""
