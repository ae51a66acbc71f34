"""How often the long tests repeat.

`make test-full` samples, so that it runs in one piece within 75 minutes on two cores. With
`OMNIGRAPH_TEST_DEPTH=10`, the generators make ten times as many programs, histories, names and kills.
"""

import os

DEPTH = float(os.environ.get("OMNIGRAPH_TEST_DEPTH", "1"))


def repeats(sampled: int) -> int:
    """The number of repetitions at this depth, where `sampled` is the number of a normal run."""
    return max(1, round(sampled * DEPTH))


def stride(sampled: int) -> int:
    """Of how many cases one is run at this depth, where `sampled` is the number of a normal run."""
    return max(1, round(sampled / DEPTH))
