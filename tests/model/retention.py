"""The cleanup model: actors that pause anywhere, a collector that may crash, no clock.

Random schedules of writers, merges, forks, tags, deletions, loads, finishers and collectors with a
grace of nothing. `python -m tests.model.retention` prints which schedule breaks when which part of
the protocol is left out; `python -m tests.model.retention PART` tells that schedule step by step.
"""

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from tests.model.retention_collector import collector
from tests.model.retention_world import Files, Intent, Made, Version, World, closing

Actor = Iterator[str]
Wish = tuple[str, int, int]  # the branch to read, commits back from its head, the name to take
STEPS, AT_ONCE = 400, 6
# Every part that can be left out, and why the collector or a namer has it.
PARTS = {
    "fence": "a writer that staged before the list must lose its swap",
    "epoch": "and stage again, instead of replaying files that are taken for lost",
    "lists": "who names something old reads the condemned lists",
    "all lists": "of every run, not only of the newest",
    "lists for heads": "also when what it names is the head of a branch",
    "open": "and opens the versions it names",
    "intents": "the second look reads intents",
    "armed": "an armed intent protects every newer file",
    "creates": "and the manifest that it is about to name",
    "heads again": "the second look reads heads again after the intents",
    "verdict": "one object decides between owner, finisher and discarder",
    "refusal": "who holds `publish` and cannot publish leaves a refusal in the log",
    "sweep object": "the result of the look is created if absent, and all collectors obey it",
    "list again": "and the list is looked for once more: gone means that another ended this run",
    "tags": "tags are roots",
    "tombstone": "the closing version of a deleted branch stays",
}


def writer(w: World, wish: str | None = None) -> Actor:
    """Stage, swap; after a lost swap look at the epoch, replay or stage again."""
    found = [one for one in w.open(w.branches) if wish in (None, one[0])]
    name, ulid = w.chance.choice(found)
    head = w.head(ulid)
    if head is None or head.closed:
        return
    at, epoch = len(w.lines[ulid]), head.epoch
    yield f"writer on {name} read version {at}"
    staged = w.write()
    dropped = Files(one for one in head.files if w.chance.random() < 0.3)
    commit = w.new()
    yield f"writer staged {staged}"
    for _ in range(3):
        after = Made(commit, (head.files - dropped) | {staged})
        if w.swap(ulid, at, replace(head, log=(*head.log, after))):
            return
        yield "writer lost"
        head = w.head(ulid)
        if head is None or head.closed:
            return
        at, dropped = len(w.lines[ulid]), dropped & head.files
        if w.without != "epoch" and head.epoch != epoch:
            staged, epoch = w.write(), head.epoch
            yield f"writer staged again: {staged}"


def _guarded(w: World, intent: Intent, source: int, head: Version | None) -> Iterator[str]:
    """What comes before anything is named; ends with `refused` when it may not be.

    That a `head` is still the head, now that the intent stands, is no proof: a branch that was made
    and deleted within one look of a collector was seen by nobody.
    """
    if head is not None and w.without == "lists for heads":
        now = w.head(source)
        if now is None or now.closed or now.log != head.log:
            w.retire(intent)
            yield "refused"
        return
    lists = list(w.lists)
    yield f"intent {intent.id} read lists {lists}"
    shown = lists[-1:] if w.without == "all lists" else lists
    listed = w.without != "lists" and intent.names & w.condemned(shown)
    if listed or (w.without != "open" and not w.there(intent.names)):
        w.retire(intent)
        yield "refused"
        return
    yield f"intent {intent.id} opened {sorted(intent.names)}"


def _create(w: World, kind: str, wish: Wish | None) -> Actor:
    """A branch or a tag from a commit of the past, or from a head."""
    names = w.tags if kind == "t" else w.branches
    at_random = (w.chance.choice(w.open(w.branches))[0], w.chance.randrange(5), w.chance.randrange(3))
    source_name, back, place = wish or at_random
    source = w.ref(w.branches, source_name)
    head = w.head(source) if source is not None else None
    if source is None or head is None or head.closed:
        return
    back = min(back, len(head.log) - 1)
    log = head.log[: len(head.log) - back]
    name = f"{kind}{place}"
    number = len(names.get(name, ()))
    if number % 2:
        return
    yield f"{kind} {name} from {source_name} read {sorted(log[-1].files)}"
    intent = Intent(w.new(), log[-1].files, source, creates=w.new())
    w.intents[intent.id] = intent
    yield f"{kind} {name} armed intent {intent.id} on {sorted(intent.names)}"
    for step in _guarded(w, intent, source, None if back else head):
        if step == "refused":
            return
        yield step
    if w.decide(intent, "publish") != "publish":
        return
    yield f"intent {intent.id} may publish"
    assert intent.creates is not None
    w.lines[intent.creates] = [Version(log)]
    yield f"{kind} {name} has manifest {intent.creates}"
    refs = names.setdefault(name, [])
    if len(refs) == number:
        refs.append(intent.creates)
        w.changes += 1
        if w.head(intent.creates) is None:
            w.wrong.append(f"{kind} {name} was named, and its manifest is gone")
    yield f"{kind} {name} named"
    w.retire(intent)


def fork(w: World, wish: Wish | None = None) -> Actor:
    """A new branch; names are used again after a deletion."""
    return _create(w, "b", wish)


def tag(w: World, wish: Wish | None = None) -> Actor:
    """A new tag."""
    return _create(w, "t", wish)


def delete(w: World, wish: str | None = None) -> Actor:
    """Close a branch or a tag, then its name."""
    names = w.branches if wish else w.chance.choice([w.branches, w.tags])
    found = [one for one in w.open(names) if one[0] == wish or (not wish and one[0] != "main")]
    if not found:
        return
    name, ulid = w.chance.choice(found)
    number = len(names[name])
    head = w.head(ulid)
    while head is not None and not head.closed:
        at = len(w.lines[ulid])
        yield f"deletion of {name} read version {at}"
        w.swap(ulid, at, closing(head))
        head = w.head(ulid)
    yield f"{name} is closed"
    if len(names[name]) == number:
        names[name].append(None)


def merge(w: World) -> Actor:
    """Name the files of another branch, or of an old commit of the same one, in a new commit."""
    (_, source), (into, target) = (w.chance.choice(w.open(w.branches)) for _ in range(2))
    head, old = w.head(target), w.head(source)
    if head is None or old is None or head.closed or old.closed:
        return
    back = w.chance.randrange(min(4, len(old.log))) if source == target else 0
    theirs = old.log[len(old.log) - 1 - back].files
    intent = Intent(w.new(), theirs, target, commit=w.new())
    w.intents[intent.id] = intent
    yield f"merge into {into} armed intent {intent.id} on {sorted(theirs)}"
    for step in _guarded(w, intent, source, old if back == 0 else None):
        if step == "refused":
            return
        yield step
    w.confirmed[intent.id] = theirs
    yield f"intent {intent.id} confirmed"
    if w.decide(intent, "publish") == "publish":
        yield f"intent {intent.id} may publish"
        yield from _finish(w, intent, theirs)


def load(w: World) -> Actor:
    """Stage many files under an armed intent, confirm them, publish them exactly once."""
    name, ulid = w.chance.choice(w.open(w.branches))
    head = w.head(ulid)
    if head is None or head.closed:
        return
    intent = Intent(w.new(), head.files, ulid, armed=w.time, commit=w.new())
    w.intents[intent.id] = intent
    yield f"load into {name} armed intent {intent.id}"
    now = w.head(ulid)
    if now is None or now.log[-1].id != head.log[-1].id:  # what it named may be condemned by now
        w.retire(intent)
        return
    staged = set[int]()
    for _ in range(w.chance.randint(1, 4)):
        staged.add(w.write())
        yield f"load staged {max(staged)}"
    if intent.id not in w.intents:
        return
    w.confirmed[intent.id] = Files(staged)
    yield f"intent {intent.id} confirmed"
    if w.decide(intent, "publish") == "publish":
        yield f"intent {intent.id} may publish"
        yield from _finish(w, intent, Files(staged))


def _finish(w: World, intent: Intent, staged: Files) -> Actor:
    """Publish what was confirmed, or the refusal; its own files are exempt from the epoch."""
    assert intent.commit is not None
    refusing = w.chance.random() < 0.3  # a check that is repeated does not hold any more
    while True:
        head = w.head(intent.line)
        if head is None or head.closed:
            break
        found = [one for one in head.log if one.id == intent.commit]
        if found:
            break
        if refusing and w.without == "refusal":
            w.told_failed.add(intent.commit)
            break
        at = len(w.lines[intent.line])
        yield f"intent {intent.id} read version {at}"
        files = head.files if refusing else head.files | staged
        after = Made(intent.commit, files, refused=refusing)
        if w.swap(intent.line, at, replace(head, log=(*head.log, after))):
            if refusing:
                w.told_failed.add(intent.commit)
            break
        yield f"intent {intent.id} lost"
    yield f"intent {intent.id} is over"
    w.retire(intent)


def finisher(w: World) -> Actor:
    """Finish or discard an intent; the model knows no leases: its owner may well live."""
    if not w.intents:
        return
    intent = w.chance.choice(list(w.intents.values()))
    staged = w.confirmed.get(intent.id)
    yield f"finisher found intent {intent.id}"
    wish = "discard" if staged is None or w.chance.random() < 0.2 else "publish"
    verdict = w.decide(intent, wish)
    yield f"finisher of intent {intent.id} was told {verdict}"
    if verdict == "discard":
        w.retire(intent)
    elif verdict == "publish" and staged is not None and intent.commit is not None:
        yield from _finish(w, intent, staged)


ACTORS: tuple[Callable[[World], Actor], ...] = (
    *(writer,) * 5,
    *(fork, tag, delete, merge, load),
    *(fork, delete, merge, load),
    *(finisher,) * 2,
    *(collector,) * 3,
)


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a schedule ended: what broke at which step, or nothing."""

    broken: str | None
    step: int
    swept: int
    trace: tuple[str, ...] = ()


def run(seed: int, without: str = "") -> Outcome:
    """One random schedule; every actor may sleep for ever, which is a crash."""
    w = World(seed, without)
    running: list[Actor] = []
    trace: list[str] = []
    checked = 0
    for step in range(STEPS):
        w.time += 1
        if len(running) < AT_ONCE:
            running.append(w.chance.choice(ACTORS)(w))
        actor = w.chance.choice(running)
        told = next(actor, None)
        if told is None or w.chance.random() < 0.01:  # it ended, or was killed
            running.remove(actor)
        if told is not None:
            trace.append(told)
        broken = w.broken() if w.changes != checked else None
        checked = w.changes
        if broken is not None:
            return Outcome(broken, step, w.swept, tuple(trace))
    return Outcome(_leaks(w), STEPS, w.swept, tuple(trace))


def _leaks(w: World) -> str | None:
    """When all is quiet, intents are settled and two more runs find everything that is garbage."""
    for intent in list(w.intents.values()):
        _drain(_settled(w, intent))
    runs = len(w.lists) + len(w.sweeps) + 2  # those that were left, and one of its own after all
    while runs > 0:
        w.claim = None
        _drain(collector(w))
        runs -= 0 if w.lists or w.sweeps else 1
    kept: set[int] = set()
    for _, ulid in (*w.open(w.branches), *w.open(w.tags)):
        head = w.head(ulid)
        if head is not None:
            for made in head.log[-2:]:
                kept |= made.files
    left = w.files.keys() - kept
    if left or w.lists or w.sweeps:
        return f"garbage is left: {sorted(left)}, lists {list(w.lists)}, sweeps {list(w.sweeps)}"
    return w.broken()


def _settled(w: World, intent: Intent) -> Actor:
    staged = w.confirmed.get(intent.id)
    publish = staged is not None and intent.commit is not None
    verdict = w.decide(intent, "publish" if publish else "discard")
    if verdict == "publish" and staged is not None and intent.commit is not None:
        yield from _finish(w, intent, staged)
    w.retire(intent)


def _drain(actor: Actor) -> None:
    for _ in actor:
        pass


class Stage:
    """A schedule that was thought out: named actors, each run until it says something."""

    def __init__(self, without: str) -> None:
        self.w = World(0, without)
        self.actors: dict[str, Actor] = {}
        self.trace: list[str] = []

    def add(self, name: str, actor: Actor) -> None:
        """Bring an actor on; it does nothing yet."""
        self.actors[name] = actor

    def until(self, name: str, words: str, times: int = 1) -> None:
        """Run an actor until it has said so, or to its end."""
        for told in self.actors[name]:
            self.trace.append(f"{name}: {told}")
            times -= words in told
            if times == 0:
                return

    def end(self, name: str) -> None:
        """Run an actor to its end."""
        self.until(name, "never said")

    def play(self, actor: Actor) -> None:
        """Bring an actor on and run it to its end."""
        self.add("another", actor)
        self.end("another")


def _sleeping_collector(s: Stage) -> None:
    """A collector sleeps in its look, another ends its run, and a tag lives through both."""
    for _ in range(4):
        s.play(writer(s.w, "main"))
    s.play(fork(s.w, ("main", 0, 0)))
    s.add("tag", tag(s.w, ("main", 3, 0)))
    s.add("A", collector(s.w))
    s.until("tag", "read")
    s.until("A", "read main", 3)
    s.until("tag", "armed")
    s.w.claim = None
    s.w.chance.random = lambda: 0.0  # type: ignore[method-assign]
    s.play(collector(s.w))
    s.end("tag")
    s.end("A")


def _late_writer(s: Stage) -> None:
    """A writer sleeps while its branch is deleted and collected."""
    s.play(fork(s.w, ("main", 0, 0)))
    s.add("writer", writer(s.w, "b0"))
    s.until("writer", "staged")
    s.play(delete(s.w, "b0"))
    s.w.claim = None
    s.play(collector(s.w))
    s.end("writer")


def _passed_on(s: Stage) -> None:
    """Files are handed on behind a look: by an intent, a branch, its deletion, another intent."""
    for _ in range(4):
        s.play(writer(s.w, "main"))
    s.add("first", fork(s.w, ("main", 3, 0)))
    s.until("first", "may publish")
    s.add("A", collector(s.w))
    s.until("A", "read main", 2)  # it marked, and begins its second look
    s.end("first")
    s.add("second", fork(s.w, ("b0", 0, 1)))
    s.until("second", "read")
    s.until("A", "read main")  # there is no intent
    s.until("second", "may publish")
    s.play(delete(s.w, "b0"))
    s.end("A")
    s.end("second")


DIRECTED: dict[str, Callable[[Stage], None]] = {
    "sweep object": _sleeping_collector,
    "list again": _sleeping_collector,
    "tombstone": _late_writer,
    "lists for heads": _passed_on,
}


def directed(schedule: str, without: str = "") -> Outcome:
    """A schedule that was thought out for one part, played with or without a part."""
    stage = Stage(without)
    DIRECTED[schedule](stage)
    return Outcome(stage.w.broken(), len(stage.trace), stage.w.swept, tuple(stage.trace))


def search(without: str, limit: int) -> tuple[int, Outcome] | None:
    """The first schedule that breaks."""
    for seed in range(limit):
        found = run(seed, without)
        if found.broken is not None:
            return seed, found
    return None


def main(parts: list[str]) -> None:
    """Print the table, or one schedule."""
    if parts and parts[0].isdecimal():
        count = int(parts[0])
        found = [run(seed) for seed in range(count)]
        bad = [(n, one.broken) for n, one in enumerate(found) if one.broken]
        print(f"{count} schedules, {sum(o.swept for o in found)} files swept, broken: {bad[:5]}")
        return
    for part in parts or PARTS:
        told_by = DIRECTED.get(part)
        at = (0, directed(part, part)) if told_by else search(part, 200_000)
        told = f"{'directed' if told_by else f'seed {at[0]}'}: {at[1].broken}" if at else "NEVER"
        print(f"without {part:14} {told}", flush=True)
        if parts and at:
            print(*at[1].trace[-60:], sep="\n")


if __name__ == "__main__":
    main(sys.argv[1:])
