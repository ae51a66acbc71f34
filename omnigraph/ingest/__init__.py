"""Loads and exports that run in this process, and the staging of all changes.

This package implements parsing, record validation, ids, and the load modes. `spark` handles bulk loads. Start with
`load.py`, then read `record_intake.py` and `stage.py`.
"""
