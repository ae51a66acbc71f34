"""The rules of a valid graph: one evaluator for mutations, loads and merges.

Each of them passes in the changes it wants to make. The rules look at those changes and at the
stored rows they need, never at the whole graph. Read first: `delta.py` and `check.py`.
"""
