"""Neighbor lookup: sorted lists per edge type and direction, caches for these lists, and index lookups.

This package only finds neighbors; `operators` defines the semantics of a traversal. Start with `neighbors.py`, which
chooses between lists and lookups, then read `neighbor_lists.py`.
"""
