"""Small loads and exports in this process, and the staging of every change.

Owns parsing, validation of records, ids, and the load modes. Bulk data on Spark is not handled
here. Start with `load.py`, then `intake.py` and `stage.py`.
"""
