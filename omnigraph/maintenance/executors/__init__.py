"""Executors, which run long maintenance jobs in this process or in other processes.

Jobs and results are plain data. An executor makes no decisions and publishes nothing: no version references the files
that it writes until its caller publishes them. Start with `protocol.py`.
"""
