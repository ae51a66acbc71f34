"""Generate schema text from Python classes.

`proposal` prints types as text, `from_classes` reads dataclasses and pydantic models, and `python_types` translates
annotations. To generate schema text from data, see `ingest.infer`. Generated text is compiled like any other schema
text, so mistakes in it are reported in the same way.
"""
