"""Whether a graph is well, what it looks like inside, and how to heal what others did to it.

Checks read and never write; only `repair` publishes, and only what was asked for twice.
"""
