"""The target size for new fragments, which loads, merges and maintenance all use.

This module contains only constants, so it is fast to import.
"""

# The cost of changing one row is proportional to the size of its fragment, because Lance computes row versions for the
# whole fragment. This computation takes 20 ms for a million rows and 3 ms for a hundred thousand rows. Reads are not
# affected: reading ten million rows takes the same time from 39 fragments as from 10.
FRAGMENT_ROWS = 1 << 18
FRAGMENT_BYTES = 128 << 20
# A write of rows that are already in memory makes fewer and larger fragments. They must have far less than 2 GiB of
# text, which is the most that a batch can contain.
MAX_WRITTEN_BYTES = 512 << 20
