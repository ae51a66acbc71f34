"""The two languages of Omnigraph: `.pg` describes a graph, `.gq` asks and changes it.

Everything below is pure: text in, immutable objects or typed errors out. It reads no file but its
own grammars, and imports neither lance, pyarrow nor pyspark.
"""
