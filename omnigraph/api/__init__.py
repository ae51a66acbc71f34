"""What users hold: `Graph`, `AsyncGraph`, and the facets that they are composed of.

Owns the public methods, their options and the state of an open handle. Each method is one call
into a layer below; nothing here reads or writes a table itself. Read `surface.py` for the whole
interface, `graph.py` for the daily verbs, `handle.py` for the state that all of them share.
"""
