"""Text analysis and text conditions: the tokenizer, `search`, `match_text` and `fuzzy`.

Works on any column without an index. The rules of the tokenizer are documented below and are part
of what a query means: an index may speed answers up and never change them.
"""
