"""The size of new fragments, for every writer: loads, merges, maintenance.

Only numbers: this module must stay fast to import.
"""

# Changing one row costs time in proportion to its fragment, since Lance computes the versions of
# all its rows: 20 ms for a million rows, 3 ms for a hundred thousand. Reads are not affected: ten
# million rows are read as fast from 39 fragments as from 10.
FRAGMENT_ROWS = 1 << 18
FRAGMENT_BYTES = 128 << 20
