"""Small loads and exports in this process, and the staging of every change.

This package implements parsing, validation of records, ids, and the load modes. Bulk loads on Spark
are handled in `spark`. Start with `load.py`, then `record_intake.py` and `stage.py`.
"""
