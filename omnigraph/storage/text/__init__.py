"""Full-text support in storage: how text is split into tokens, and the index over the tokens.

The engine must split text the same way, because a difference would lose matches. Read `fulltext.py` first.
"""
