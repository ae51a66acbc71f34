"""Frozen dataclasses that are fast to define, for use by the language packages.

This package is at the bottom of the import graph and imports no other part of `omnigraph`.
"""
