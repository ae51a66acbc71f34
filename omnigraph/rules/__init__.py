"""The rules that a valid graph must satisfy, with a single evaluator for mutations, loads and merges.

Each operation passes in the changes that it wants to make. The rules read only those changes and
the stored rows that they affect, never the whole graph. Read `delta.py` and `check_delta.py` first.
"""
