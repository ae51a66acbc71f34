"""Omnigraph's two languages: `.pg` for schemas, and `.gq` for queries and mutations.

This package is pure: its functions take text, and either return immutable objects or raise typed errors. They read no
files except their own grammars, and they do not import lance, pyarrow or pyspark. Read `parsing.py` first, then
`query/compile.py` and `schema/check/__init__.py`.
"""
