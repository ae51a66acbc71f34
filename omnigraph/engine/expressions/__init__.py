"""Evaluation of values and predicates over Arrow columns, comparison across types, and integer codes for values.

Three-valued logic is implemented only in this package. Read `evaluate.py` first.
"""
