"""Values and predicates over Arrow columns: evaluation, comparison across types, integer codes.

Three-valued logic lives here and nowhere else. Read first: `evaluate.py`.
"""
