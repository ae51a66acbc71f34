"""Single-process query execution: operators that process the row ids of a snapshot.

This file must not import anything; otherwise, commands that only parse text would load NumPy and Arrow. Start with
`run_query.py` (reads) and `writes/mutate.py` (writes), then read `operators/dispatch.py`.
"""
