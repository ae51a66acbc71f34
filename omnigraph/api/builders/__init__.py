"""Build query texts from Python: node and edge sets, predicates, prepared queries, mutations.

Everything here ends in query text plus parameters; values are never spliced into the text.
Read first: `entity_sets.py`.
"""
