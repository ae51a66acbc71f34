"""Fault rules of the proxy, and the requests they match."""

import threading
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Literal

Deed = Literal[
    "drop",  # forward, then close the connection without an answer
    "answer",  # give a status of our own, after forwarding or instead of it
    "hold",  # wait until released, then forward
    "late",  # close the connection without an answer, forward when released
    "cut",  # no answer, and none to any later request, as if this side were gone
    "delay",  # wait some milliseconds, then forward
]


@dataclass(slots=True)
class Rule:
    """A fault for the requests it matches, for a limited number of them (None: all)."""

    deed: Deed
    method: str | None = None
    key: str = "*"
    times: int | None = 1
    skip: int = 0
    status: int = 500
    forward: bool = True
    milliseconds: float = 0
    hit: threading.Event = field(default_factory=threading.Event)
    released: threading.Event = field(default_factory=threading.Event)

    def release(self) -> None:
        """Let go what is held, now and later."""
        self.released.set()

    def takes(self, method: str, key: str) -> bool:
        """Whether this request is one for the rule; uses it up. Not thread-safe by itself."""
        if self.times == 0 or self.method not in (None, method) or not fnmatchcase(key, self.key):
            return False
        if self.skip:
            self.skip -= 1
            return False
        if self.times is not None:
            self.times -= 1
        return True


class Rules:
    """The rules of one proxy, asked in the order in which they were given."""

    def __init__(self) -> None:
        self._rules: list[Rule] = []
        self._lock = threading.Lock()
        self._gone = threading.Event()

    @property
    def gone(self) -> bool:
        """Whether the connection was cut: nothing is answered any more."""
        return self._gone.is_set()

    def add(self, rule: Rule) -> Rule:
        """Begin to follow a rule."""
        with self._lock:
            self._rules.append(rule)
        return rule

    def take(self, method: str, key: str) -> list[Rule]:
        """The rules for one request: every delay and hold, and the first that decides its end."""
        with self._lock:
            taken: list[Rule] = []
            for rule in self._rules:
                ends = _ends(rule)
                if ends and any(_ends(one) for one in taken):
                    continue
                if rule.takes(method, key):
                    taken.append(rule)
            if any(rule.deed == "cut" for rule in taken):
                self._gone.set()
        return taken

    def clear(self) -> None:
        """Forget all rules, release what is held, answer again."""
        with self._lock:
            for rule in self._rules:
                rule.release()
            self._rules.clear()
        self._gone.clear()


def _ends(rule: Rule) -> bool:
    return rule.deed in ("drop", "answer", "cut", "late")
