"""`omnigraph shell`: queries, mutations and commands on one graph, in one process.

This package handles the shell's input: prompts, statements, history and completion. Every statement runs as one of the
program's commands; a graph is never read or written in any other way. Start with `session.py`, which runs statements,
and `statements.py`, which finds where a statement ends.
"""
