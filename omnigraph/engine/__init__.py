"""Run one query on one snapshot: operators over row ids, in a single process.

Must never import anything here: commands that only read text must not load numpy and Arrow.
Read first: `run.py` (reads), `writes/mutate.py` (writes), `operators/dispatch.py`.
"""
