"""Retention: what is kept, and how the rest is removed beside live writers.

Correctness rests on a handshake with writers and with whoever names something old, not on clocks.
Nothing else in the package may remove a file of a table, a piece of the log or a schema.
"""
