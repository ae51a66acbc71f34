"""Loads and exports in this process, and staging for every change.

This package implements parsing, record validation, ids, and the load modes. `spark` handles bulk loads. Start with
`load.py`, then read `record_intake.py` and `stage.py`.
"""
