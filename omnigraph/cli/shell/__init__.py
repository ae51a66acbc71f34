"""`omnigraph shell`: queries, mutations and commands on one graph, in one process.

The package owns the input of the shell: prompts, statements, history and completion. It runs every statement through
the same commands as the program, and never reads or writes a graph in another way. Start with `session.py`, which runs
statements, and `statements.py`, which finds where a statement ends.
"""
