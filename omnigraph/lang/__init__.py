"""Omnigraph's two languages: `.pg` for schemas, and `.gq` for queries and mutations.

Everything in this package is pure: functions take text and return immutable objects or raise typed errors. They read no
files except their own grammars, and do not import lance, pyarrow or pyspark. Read `parsing.py` first, then
`query/compile.py` and `schema/check/__init__.py`.
"""
