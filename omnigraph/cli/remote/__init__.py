"""Graphs on a server, with the part of the graph interface that commands use.

Commands call the same methods and print the same objects as for a graph whose files they open themselves, so their
output is the same. Nothing here imports Lance, Arrow or NumPy. Read `graph` first.
"""
