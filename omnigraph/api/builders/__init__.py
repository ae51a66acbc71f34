"""Build query text from Python: node and edge sets, predicates, prepared queries, and mutations.

Every builder produces query text and parameters. Values are never inserted into the text. Read `entity_sets.py` first.
"""
