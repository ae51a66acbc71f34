"""The collector of the cleanup model: claim, list, fence, recheck, sweep, takeover.

It may stop anywhere for ever; another then takes its run over, even while it only sleeps.
"""

from collections.abc import Generator, Iterator
from dataclasses import replace

from tests.model.retention_world import KEEP, Files, World

Actor = Iterator[str]


def collector(w: World) -> Actor:
    """One run: a new one, or one that was left behind by a claim."""
    if w.claim is not None and w.chance.random() < 0.4:
        return
    # The claim is a courtesy: one that seems to be abandoned is not respected.
    w.claim = run = w.new()
    yield f"collector {run} began"
    left = [*w.lists, *w.sweeps]
    if left and w.chance.random() < 0.8:  # who claims finishes what others left
        run = left[0]
        yield f"a collector took run {run} over"
    elif not (yield from _condemn(w, run)):
        return
    if run not in w.sweeps or w.without == "sweep object":
        found = yield from _look(w, run)
        if w.without == "sweep object":
            yield from _remove(w, run, found)
            return
        w.sweeps.setdefault(run, found)
        yield f"collector {run} wrote its sweep: {sorted(w.sweeps[run])}"
    swept = w.sweeps.get(run)
    if w.without != "list again" and run not in w.lists:
        w.sweeps.pop(run, None)
        yield f"collector {run} was overtaken"
        return
    if swept is not None:
        yield from _remove(w, run, swept)


def _condemn(w: World, run: int) -> Generator[str, None, bool]:
    live: set[int] = set()
    yield from _heads(w, live)
    garbage = Files(one for one in (*w.files, *_datasets(w)) if one not in live)
    if garbage:
        w.lists[run] = garbage
        yield f"collector {run} condemned {sorted(garbage)}"
    return bool(garbage)


def _datasets(w: World) -> list[int]:
    """Manifests: of branches and tags, also those that nothing names."""
    return [ulid for ulid in w.lines if ulid not in w.gone]


def _look(w: World, run: int) -> Generator[str, None, Files]:
    """Fence, then heads, intents, heads; gives what is still unreachable."""
    listed = w.lists.get(run, Files())
    if w.without != "fence":
        for name, ulid in w.open(w.branches):
            yield from _fence(w, name, ulid)
    live: set[int] = set()
    newer: list[int] = []
    yield from _heads(w, live)
    if w.without != "intents":
        for intent in list(w.intents.values()):
            _protect(w, intent.id, live, newer)
            yield f"collector {run} read intent {intent.id}"
    if w.without != "heads again":
        yield from _heads(w, live)
    born = w.files
    return Files(one for one in listed if one not in live and not any(born.get(one, -1) >= armed for armed in newer))


def _fence(w: World, name: str, ulid: int) -> Actor:
    while True:
        head = w.head(ulid)
        if head is None or head.closed:
            return
        at = len(w.lines[ulid])
        yield f"fence of {name} read version {at}"
        if w.swap(ulid, at, replace(head, epoch=head.epoch + 1)):
            yield f"{name} is fenced"
            return


def _heads(w: World, live: set[int]) -> Actor:
    named = w.open(w.branches) + (w.open(w.tags) if w.without != "tags" else [])
    for name, _ in named:
        ulid = w.ref(w.branches, name) or w.ref(w.tags, name)
        head = w.head(ulid) if ulid is not None else None
        if ulid is not None and head is not None:
            live.add(ulid)
            for made in head.log[-KEEP:]:
                live |= made.files
        yield f"collector read {name}"


def _protect(w: World, intent_id: int, live: set[int], newer: list[int]) -> None:
    intent = w.intents.get(intent_id)
    if intent is None:
        return
    live |= intent.names
    if w.without != "creates" and intent.creates is not None:
        live.add(intent.creates)
    head = w.head(intent.line)
    if head is not None:
        live |= head.files | {intent.line}
    if intent.id in w.confirmed:
        live |= w.confirmed[intent.id]
    elif intent.armed is not None and w.without != "armed":
        newer.append(intent.armed)


def _remove(w: World, run: int, swept: Files) -> Actor:
    for one in sorted(swept):
        _remove_one(w, one)
        yield f"collector {run} removed {one}"
    w.lists.pop(run, None)
    yield f"collector {run} removed its list"
    w.sweeps.pop(run, None)
    yield f"collector {run} removed its sweep"
    if w.claim == run:
        w.claim = None


def _remove_one(w: World, one: int) -> None:
    w.swept += 1
    w.changes += 1
    w.files.pop(one, None)
    line = w.lines.get(one)
    if line is not None:
        if line[-1].closed and w.without != "tombstone":
            w.gone.add(one)  # all but the closing version
        else:
            del w.lines[one]
