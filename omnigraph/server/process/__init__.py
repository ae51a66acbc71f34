"""The processes of a server: a supervisor that never loads the engine, and the workers that it starts and replaces.

Read `supervisor.py` first. Workers are spawned as fresh Python processes rather than forked, because the storage engine
cannot be used after a fork.
"""
