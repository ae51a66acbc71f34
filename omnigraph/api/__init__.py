"""The public classes `Graph` and `AsyncGraph`, and their facets.

This package contains the public methods, their options, and the state of an open handle. Each method makes a single
call to a lower layer, so this package never reads or writes a table directly. See `surface.py` for the whole interface,
`graph.py` for the most common methods, and `handle.py` for the state that all methods share.
"""
