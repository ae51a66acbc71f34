"""Repair of names: lost or damaged ref objects are written again, or given up.

Restores the names that are known and leaves the others to the caller. Without `confirm` it only
previews. A number of a name is never reused: a restored ref object gets the next odd one.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal

from omnigraph import ids
from omnigraph.errors import AlreadyExists, InputError, OmnigraphError, UsageError
from omnigraph.history import names, refs
from omnigraph.history.audit import Outcome
from omnigraph.history.branches import free_number, others
from omnigraph.history.closing import close
from omnigraph.history.line import line_of
from omnigraph.history.manifest import manifest_exists
from omnigraph.history.origin import RefKind
from omnigraph.history.refs import Ref
from omnigraph.history.retention.condemned import check_unlisted
from omnigraph.history.tags import free_tag_number
from omnigraph.history.unnamed import (
    PLACES,
    DamagedRef,
    Names,
    Unnamed,
    find_unnamed,
    read_names,
)
from omnigraph.storage import layout
from omnigraph.storage.store import Store

NameAction = Literal["preview", "restored", "closed", "dropped", "refused", "no_op"]


@dataclass(frozen=True, slots=True)
class NameChoice:
    """The caller's decision: a manifest to restore, under which name, or one to drop.

    `drop` is the ULID of a manifest, or a name whose ref object leads to no manifest.
    """

    restore: str | None = None
    name: str | None = None
    tag: bool = False
    drop: str | None = None

    def check(self) -> None:
        """Reject options that contradict one another."""
        if self.restore is not None and self.drop is not None:
            raise UsageError(reason="restore and drop are mutually exclusive")
        if self.restore is None and (self.name is not None or self.tag):
            raise UsageError(reason="name and tag need restore")


@dataclass(frozen=True, slots=True)
class NameRepair:
    """One branch or tag without a usable name, and what was done about it."""

    target: str
    status: str
    kind: RefKind | None
    name: str | None
    commit_id: str | None
    action: NameAction
    reason: str | None = None

    def __str__(self) -> str:
        what = f"{self.kind or 'branch or tag'} {self.name or ''}".strip()
        said = f"{what} ({self.target}): {self.status}, {self.action}"
        return f"{said}: {self.reason}" if self.reason else said

    def to_json(self) -> dict[str, Any]:
        """Return the row as JSON-compatible data."""
        return {
            "target": self.target,
            "status": self.status,
            "kind": self.kind,
            "name": self.name,
            "graph_commit_id": self.commit_id,
            "action": self.action,
            "reason": self.reason,
        }


def repair_names(
    store: Store, choice: NameChoice, *, confirm: bool, actor: str | None = None
) -> tuple[NameRepair, ...]:
    """Restore every name that is known, and carry out the caller's choice for the others."""
    choice.check()
    found, known = find_unnamed(store)
    unnamed = [one for one in found if one.status not in ("never_named", "unreadable")]
    run = _Run(store, choice, confirm, actor, known)
    rows = [run.repair(one, _is_unique(one, unnamed)) for one in unnamed]
    rows += run.repair_refs({(one.kind, one.name) for one in unnamed})
    run.check_used()
    return tuple(rows)


def _is_unique(one: Unnamed, unnamed: list[Unnamed]) -> bool:
    return Counter((other.kind, other.name) for other in unnamed)[one.kind, one.name] == 1


@dataclass(slots=True)
class _Run:
    """State of one repair of names."""

    store: Store
    choice: NameChoice
    confirm: bool
    actor: str | None
    names: Names
    used: bool = False

    def repair(self, one: Unnamed, unique: bool) -> NameRepair:
        """Restore, close or drop one manifest; report a reason when that is not possible."""
        row = NameRepair(one.directory, one.status, one.kind, one.name, one.commit_id, "no_op")
        choice = self.choice
        if choice.drop == one.ulid:
            self.used = True
            return self._apply(row, "dropped", lambda: self._close(one, "drop_branch"))
        if choice.restore == one.ulid:
            self.used = True
            kind: RefKind = "tag" if choice.tag else one.kind or "branch"
            row = replace(row, kind=kind, name=choice.name or one.name)
            return self._apply(row, "restored", lambda: self._restore(one, row.name, kind))
        if choice.restore is not None or choice.drop is not None:
            return row
        if one.status == "closing_lost":
            return self._apply(row, "closed", lambda: self._close(one, "close_branch"))
        if one.name is None or one.kind is None or not unique:
            why = "its name is unknown" if unique else "several manifests had this name"
            advice = f"{why}: choose with restore {one.ulid} and name, or drop {one.ulid}"
            return replace(row, action="refused" if self.confirm else "preview", reason=advice)
        return self._apply(row, "restored", lambda: self._restore(one, one.name, one.kind))

    def repair_refs(self, known: set[tuple[RefKind | None, str | None]]) -> Iterator[NameRepair]:
        """Repair refs that lead to no manifest: they are damaged, or the manifest is missing."""
        for one in self.names.damaged:
            kind = refs.kind_of(one.place)
            if (kind, one.name) in known and self.choice.drop != one.name:
                continue  # its manifest was found
            yield self._release(one, "ref_damaged", kind)
        if self.choice.drop is None or self.used:
            return
        for place in PLACES:
            number = self.names.numbers[place].get(self.choice.drop, 0)
            ref = self._read(self.choice.drop, number, place)
            if ref is not None and not manifest_exists(self.store, ref.ulid):
                dangling = DamagedRef(place, ref.name, number, "its manifest is missing")
                yield self._release(dangling, "manifest_missing", refs.kind_of(place))

    def _read(self, name: str, number: int, place: str) -> Ref | None:
        damaged = any((one.name, one.place) == (name, place) for one in self.names.damaged)
        return None if damaged or not number % 2 else refs.read_ref(self.store, name, number, place)

    def _release(self, one: DamagedRef, status: str, kind: RefKind) -> NameRepair:
        row = NameRepair(one.path, status, kind, one.name, None, "no_op", one.reason)
        if self.choice.drop == one.name:
            self.used = True
            return self._apply(replace(row, reason=None), "dropped", lambda: self._close_name(one))
        advice = f"its manifest is unknown: choose one with restore and name {one.name},"
        advice += f" or drop {one.name}"
        return replace(row, action="refused" if self.confirm else "preview", reason=advice)

    def check_used(self) -> None:
        """Reject a choice that does not match anything in need of repair."""
        chosen = self.choice.restore or self.choice.drop
        if chosen is not None and not self.used:
            raise InputError(
                f"'{chosen}' does not need a repair of its name",
                reason="unknown manifest",
                hint="run `omnigraph repair` to list what does",
            )

    def _apply(self, row: NameRepair, action: NameAction, work: Any) -> NameRepair:
        if not self.confirm:
            return replace(row, action="preview", reason=f"would be {action}")
        try:
            work()
        except OmnigraphError as error:
            if error.effect != "none":
                raise
            return replace(row, action="refused", reason=error.message)
        return replace(row, action=action)

    def _restore(self, one: Unnamed, name: str | None, kind: RefKind | None) -> None:
        if name is None or kind is None or one.opened is None:
            raise InputError(f"{one.directory} needs a name", reason="unknown name")
        # A name that the manifest had before stays valid, whatever the rules for new names are.
        text = name if name == one.name else names.check_new(name, kind)
        ref = self._next_ref(one, text, kind)
        check_unlisted(self.store, one.opened.state, one.opened.state.head.commit_id)
        refs.claim(self.store, ref, _facts(one, kind))
        self._check_alone(ref)
        self._record("restore_name", ref.name, one.commit_id)

    def _next_ref(self, one: Unnamed, name: str, kind: RefKind) -> Ref:
        """Return the ref to write; its number is above every number known for the name."""
        place = layout.TAGS if kind == "tag" else layout.REFS
        damaged = [ref for ref in self.names.damaged if (ref.place, ref.name) == (place, name)]
        if damaged:
            number = damaged[0].number + 2
        elif kind == "tag":
            number = free_tag_number(self.store, name)
        else:
            number = free_number(self.store, name)
        origin = one.opened.state.origin if one.opened is not None else None
        if origin is not None and (origin.name, origin.place) == (name, place):
            number = max(number, origin.number)
        fork = one.opened.state.head.fork if one.opened is not None else None
        return Ref(
            name, one.ulid, number, origin.parent if origin is not None else None, fork, place
        )

    def _check_alone(self, ref: Ref) -> None:
        """Withdraw the ref if its name overlaps another, or if the manifest got a second name."""
        names_now = read_names(self.store)
        try:
            if ref.place == layout.REFS:
                numbers = names_now.numbers[ref.place]
                names.check_disjoint(ref.name, others(self.store, ref.name, numbers))
            self._check_only_name(ref, names_now)
        except AlreadyExists:
            refs.withdraw(self.store, ref, ids.new_ulid())
            raise

    def _check_only_name(self, ref: Ref, known: Names) -> None:
        for place in PLACES:
            for name, number in known.numbers[place].items():
                other = self._read(name, number, place)
                if other is not None and other.ulid == ref.ulid and other != ref:
                    message = f"{refs.kind_of(place)} '{name}' already names this manifest"
                    raise AlreadyExists(message, branch=name)

    def _close(self, one: Unnamed, operation: str) -> None:
        close(self.store, line_of(self.store, one.label, one.ulid))
        self._record(operation, one.label, one.commit_id)

    def _close_name(self, one: DamagedRef) -> None:
        path = layout.ref_name(one.name, one.number + 1, one.place)
        self.store.objects.create_json(path, {"deleted": None, "nonce": "dropped"})
        self._record("drop_name", one.name, None)

    def _record(self, operation: str, branch: str, commit_id: str | None) -> None:
        record_repair_event(self.store, operation, branch, commit_id, self.actor)


def record_repair_event(
    store: Store, operation: str, branch: str, commit_id: str | None, actor: str | None
) -> None:
    """Write the audit object of a repair that has no commit of its own."""
    event, now = ids.new_ulid(), ids.now_micros()
    outcome = Outcome(event, "repaired", operation, branch, actor, commit_id, now)
    store.objects.create_json(f"{layout.AUDIT}/{event}.json", outcome.to_json())


def _facts(one: Unnamed, kind: RefKind) -> dict[str, Any]:
    """Return the members of a restored ref; concurrent repairs must write identical objects."""
    facts: dict[str, Any] = {"nonce": f"restored-{one.ulid}"}
    origin = one.opened.state.origin if one.opened is not None else None
    if kind == "tag" and origin is not None:
        facts |= {"created_at": origin.created_at, "actor_id": origin.actor}
        facts |= {"message": origin.message}
    return facts
