"""Neighbours of nodes: sorted lists per edge type and direction, their caches, and index probes.

Owns how neighbours are found; operators only ask for them. Never decides what a query means.
Read first: `neighbours.py` (which source of neighbours is used), then `neighbour_lists.py`.
"""
