"""Single-process query execution: operators that process row ids from a snapshot.

This file must not import anything; otherwise, commands that only parse text would load NumPy and Arrow. Start with
`run_query.py` (reads) and `writes/mutate.py` (writes), then read `operators/dispatch.py`.
"""
