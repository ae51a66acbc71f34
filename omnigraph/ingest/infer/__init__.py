"""Schemas proposed from data: samples of tables and files, and the types that their columns suggest.

`samples` reads, `column_types` and `text_types` decide types, and `propose` decides keys and endpoints. A proposal is
schema text with comments for every guess; nothing is written. Start reading with `propose`.
"""
