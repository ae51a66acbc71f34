"""The two languages of Omnigraph: `.pg` declares a schema, and `.gq` queries and changes a graph.

Everything in this package is pure: functions take text and return immutable objects or raise typed errors. The
functions read no files except their own grammars, and do not import lance, pyarrow or pyspark. Read first:
`parsing.py`, then `query/compile.py` and `schema/check/__init__.py`.
"""
