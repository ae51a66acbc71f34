"""Full-text support in storage: splitting text into tokens, and the index over the tokens.

The engine must tokenize text in the same way, because any difference would lose matches. Read `fulltext.py` first.
"""
