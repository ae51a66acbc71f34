"""Schema text made by a program: from Python classes here, and from data in `ingest.infer`.

`proposal` prints types as text, `from_classes` reads dataclasses and pydantic models, and `python_types` translates
annotations. The text is compiled like any other, so a mistake in it is reported in the same way.
"""
