"""Full-text support in storage: tokenization, and the full-text index.

The query engine must split text in the same way as this package. Any difference would cause searches to miss matches.
Start with `fulltext.py`.
"""
