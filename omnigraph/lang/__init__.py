"""The two languages of Omnigraph: `.pg` declares a schema, `.gq` queries and changes a graph.

Everything below is pure: text in, immutable objects or typed errors out. It reads no files except
its own grammars, and imports none of lance, pyarrow and pyspark. Read first: `parsing.py`, then
`query/compile.py` and `schema/check/__init__.py`.
"""
