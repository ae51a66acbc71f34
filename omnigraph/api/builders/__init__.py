"""Build query text from Python: node and edge sets, predicates, prepared queries, and mutations.

Every builder produces query text plus parameters; values are never spliced into the text. Read `entity_sets.py` first.
"""
