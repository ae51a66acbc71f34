"""Graphs on a server, with the part of the graph interface that commands use.

Commands call the same methods and print the same objects for these graphs as for graphs that they open from files, so
the output is the same. Nothing here imports Lance, Arrow or NumPy. Read `graph` first.
"""
