"""The processes of a server: a supervisor that never loads the engine, and the workers that it starts and replaces.

Read `supervisor.py` first. Workers are started as new programs, because the storage engine cannot be used after a fork.
"""
