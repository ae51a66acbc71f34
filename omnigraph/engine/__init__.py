"""Run one query on one snapshot: operators over row ids, in a single process.

Must never import anything here: commands that only read text must not load numpy and Arrow.
Start with `run.py` (reads) and `mutate.py` (writes).
"""
