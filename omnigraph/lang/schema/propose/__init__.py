"""Generate schema text from Python classes. (`ingest.infer` generates it from data.)

`proposal` prints types as text, `from_classes` reads dataclasses and pydantic models, and `python_types` translates
annotations. Generated text is compiled like any other schema text, so mistakes in it are reported in the same way.
"""
