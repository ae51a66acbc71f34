"""Values and predicates over Arrow columns: evaluation, comparison across types, and integer codes.

Three-valued logic is implemented only in this package. Read `evaluate.py` first.
"""
