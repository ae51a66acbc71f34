"""A process that writes until it is stopped and reports every completed write."""

import signal
import sys
from types import FrameType

from tests.rig.writes import TABLES, append, line_at, update, write, write_long


def _end(number: int, _: FrameType | None) -> None:
    sys.exit(128 + number)


def main(root: str) -> None:
    """Write for ever. A signal ends the program as the command line does: by an exception."""
    signal.signal(signal.SIGTERM, _end)
    # A run in the background of a shell ignores this one, and its children inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    line = line_at(root)
    number = 0
    while True:
        row = f"row-{number}"
        make = write_long if number % 3 == 2 else write
        make(line, append({row: 0}), TABLES)
        print(row, flush=True)
        if number % 4 == 3:
            write(line, update({row: 1}))
        number += 1


if __name__ == "__main__":
    main(sys.argv[1])
