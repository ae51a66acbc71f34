"""The two languages of Omnigraph: `.pg` declares a schema, `.gq` queries and changes a graph.

Everything in this package is pure: functions take text and return immutable objects or raise typed errors. They read
no files except their own grammars, and import none of lance, pyarrow and pyspark. Read first: `parsing.py`, then
`query/compile.py` and `schema/check/__init__.py`.
"""
