"""Executors: where the long work of maintenance runs, in this process or in others.

Jobs and results are plain data. An executor decides nothing and publishes nothing: no version
references the files that it wrote until its caller publishes them. Read `protocol.py` first.
"""
