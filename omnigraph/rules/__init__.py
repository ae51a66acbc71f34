"""The rules that a valid graph must satisfy, and the evaluator that mutations, loads and merges share.

Each operation describes its changes as a delta. The rules read only the delta and the stored rows that it affects,
never the whole graph. Read `delta.py` and `check_delta.py` first.
"""
