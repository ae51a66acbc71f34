"""One query on one snapshot: operators over row ids, in one process.

Nothing is imported here: commands that only read text must not pay for numpy and Arrow.
"""
