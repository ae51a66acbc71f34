"""How large a fragment is made, by whoever makes one: a load, a merge, an upkeep.

Numbers only, and nothing that takes time to import.
"""

# A change of one row costs as much as its fragment is large, since Lance works out the versions of
# all its rows: 20 ms of a million rows, 3 ms of a hundred thousand. Reading does not mind: of ten
# million rows, 39 fragments are read no slower than 10.
FRAGMENT_ROWS = 1 << 18
FRAGMENT_BYTES = 128 << 20
