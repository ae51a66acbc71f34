"""Frozen records: the dataclasses of the languages, quick to define.

At the bottom of the package; imports nothing of it.
"""
