"""Frozen records: dataclasses for the language packages that are fast to define.

This package is at the bottom of the import graph and imports nothing else from `omnigraph`.
"""
