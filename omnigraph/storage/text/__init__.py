"""Full-text support of storage: how texts are split into tokens, and the index over them.

The engine splits the same way; a difference would lose matches. Read first: `fulltext.py`.
"""
