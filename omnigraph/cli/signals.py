"""Signal handling, both while a command runs and while the program exits.

While a command runs, SIGTERM raises an exception, as SIGINT (Ctrl-C) does, so that the command can clean up. After the
command has finished, signals end the process immediately: an exception during interpreter shutdown would print a
traceback and exit with a meaningless code.
"""

import signal
from types import FrameType


class TerminatedError(KeyboardInterrupt):
    """SIGTERM was received; the program exits as it does on Ctrl-C, but with a different exit code."""


def raise_on_sigterm() -> None:
    """Install the SIGTERM handler, unless the process already has one."""
    if signal.getsignal(signal.SIGTERM) == signal.SIG_DFL:
        signal.signal(signal.SIGTERM, _raise_terminated)


def end_at_once_on_signals() -> None:
    """Restore the default action for signals that raise exceptions; ignored signals stay ignored."""
    if signal.getsignal(signal.SIGTERM) is _raise_terminated:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)


def _raise_terminated(signal_number: int, _: FrameType | None) -> None:
    signal.signal(signal_number, signal.SIG_DFL)  # a second SIGTERM ends the program without cleanup
    raise TerminatedError
