"""The world of the cleanup model: files, branches, tags, intents, lists, as plain Python.

Nothing here knows Lance or the product. Every function is one atomic request to a store; actors in
`retention.py` pause between them. `without` names the one part of the protocol that is left out.
"""

import itertools
import random
from dataclasses import dataclass, field, replace

KEEP = 2  # commits of a branch that retention keeps
Files = frozenset[int]


@dataclass(frozen=True, slots=True)
class Made:
    """A commit: its id, and the files of the whole state it shows; a refusal changes nothing."""

    id: int
    files: Files
    refused: bool = False


@dataclass(frozen=True, slots=True)
class Version:
    """One state of a branch: its history, newest last, the collector's epoch, closed or not."""

    log: tuple[Made, ...]
    epoch: int = 0
    closed: bool = False

    @property
    def files(self) -> Files:
        return self.log[-1].files


@dataclass(frozen=True, slots=True)
class Intent:
    """What an operation is about to do, and what that protects."""

    id: int
    names: Files  # of the base, or of the old commit that it names
    line: int  # the branch that it reads or writes
    armed: int | None = None  # protects everything that is newer
    creates: int | None = None
    commit: int | None = None


@dataclass
class World:
    """Everything that is durable, and what callers were told."""

    seed: int
    without: str = ""
    time: int = 0
    files: dict[int, int] = field(default_factory=dict)  # born at
    lines: dict[int, list[Version]] = field(default_factory=dict)
    gone: set[int] = field(default_factory=set)  # branches of which no version is left
    branches: dict[str, list[int | None]] = field(default_factory=dict)  # numbered refs
    tags: dict[str, list[int | None]] = field(default_factory=dict)
    intents: dict[int, Intent] = field(default_factory=dict)
    confirmed: dict[int, Files] = field(default_factory=dict)
    verdicts: dict[int, str] = field(default_factory=dict)
    lists: dict[int, Files] = field(default_factory=dict)
    sweeps: dict[int, Files] = field(default_factory=dict)
    claim: int | None = None
    told_failed: set[int] = field(default_factory=set)
    wrong: list[str] = field(default_factory=list)
    swept: int = 0
    changes: int = 0  # of what `broken` looks at

    def __post_init__(self) -> None:
        self.chance = random.Random(self.seed)
        self._next = itertools.count(1)
        self.branches["main"] = [self.new_line((Made(self.new(), Files({self.write()})),))]

    def new(self) -> int:
        """An id that was never used."""
        return next(self._next)

    def write(self) -> int:
        """A new file."""
        name = self.new()
        self.files[name] = self.time
        return name

    def new_line(self, log: tuple[Made, ...]) -> int:
        """The manifest of a new branch or tag, which nothing names yet."""
        ulid = self.new()
        self.lines[ulid] = [Version(log)]
        return ulid

    def ref(self, names: dict[str, list[int | None]], name: str) -> int | None:
        """What a name leads to; its highest number counts."""
        return names[name][-1] if names.get(name) else None

    def open(self, names: dict[str, list[int | None]]) -> list[tuple[str, int]]:
        """All open names and what they lead to."""
        return [(one, refs[-1]) for one, refs in names.items() if refs and refs[-1] is not None]

    def head(self, ulid: int) -> Version | None:
        """The newest version, None when there is none."""
        return self.lines[ulid][-1] if ulid in self.lines else None

    def swap(self, ulid: int, at: int, after: Version) -> bool:
        """The compare-and-swap: version `at + 1` is written if there is none."""
        self.changes += 1
        line = self.lines.get(ulid)
        if line is None:  # an empty directory: every number is free
            if not after.closed:
                self.wrong.append(f"acknowledged on branch {ulid}, which is gone")
            return True
        if len(line) != at:
            return False
        line.append(after)
        return True

    def there(self, files: Files) -> bool:
        return all(one in self.files for one in files)

    def condemned(self, runs: list[int] | None = None) -> Files:
        """What the lists of all runs name."""
        shown = list(self.lists) if runs is None else runs
        return Files().union(*(self.lists.get(run, Files()) for run in shown))

    def decide(self, intent: Intent, wish: str) -> str | None:
        """The verdict: created if absent; then the intent is looked for again."""
        if self.without == "verdict":
            return wish
        verdict = self.verdicts.setdefault(intent.id, wish)
        return verdict if intent.id in self.intents or self.without == "look for intent" else None

    def retire(self, intent: Intent) -> None:
        """Remove an intent and its parts."""
        self.intents.pop(intent.id, None)
        self.confirmed.pop(intent.id, None)
        self.verdicts.pop(intent.id, None)

    def broken(self) -> str | None:
        """What must never be."""
        for kind, names in (("branch", self.branches), ("tag", self.tags)):
            for name, ulid in self.open(names):
                head = self.head(ulid)
                if head is None:
                    return f"{kind} {name} has no manifest"
                if not self.there(head.files):
                    return f"the head of {kind} {name} lost files"
        main = self.head(self.open({"main": self.branches["main"]})[0][1])
        assert main is not None
        if not all(self.there(one.files) for one in main.log[-KEEP:]):
            return "a retained commit of main lost files"
        seen = [one.id for one in main.log if not one.refused]
        if len(seen) != len(set(seen)):
            return "a commit of main was published twice"
        if self.told_failed & set(seen):
            return "an operation that was told to have failed was published"
        return self.wrong[0] if self.wrong else None


def closing(version: Version) -> Version:
    """The last version of a branch."""
    return replace(version, closed=True)
