"""Full-text support in storage: splitting text into tokens, and the index over the tokens.

The query engine must split text in the same way; any difference would lose matches. Read `fulltext.py` first.
"""
