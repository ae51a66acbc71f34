"""Schema inference: sample tables and files, and propose the types that their columns suggest.

`samples` reads data, `column_types` chooses types, and `propose` chooses keys and endpoints. A proposal is schema text
with a comment on every guess; nothing is written. Start with `propose`.
"""
