"""Assigns every type and property of a schema its permanent id.

Owns matching (exact name first, then `@rename_from`) and the order in which new ids are assigned.
Ids are never reused: a type that is dropped and declared again is a new type. Pure: the identity
domain of a graph is an argument.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from omnigraph.diagnostics import Diagnostic, Severity, Source
from omnigraph.errors import language_error
from omnigraph.record import record

from .catalog import Catalog, Property, TypeKind
from .ir import KINDS, AnyType, SchemaIR, TypeIdentity, types_of
from .shape import canonical

INERT_HINT = "inert_initialization_rename_hint"
IGNORED_HINT = "ignored_exact_match_rename_hint"

Owner = tuple[TypeKind, str]


@record
class Resolved:
    """A schema with identity, and the rename hints that had no effect."""

    ir: SchemaIR
    warnings: tuple[Diagnostic, ...] = ()


@dataclass(slots=True)
class _Match:
    """The state of a match: ids that are kept, and diagnostics about rename hints."""

    source: Source
    types: dict[Owner, int] = field(default_factory=dict)
    tables: dict[Owner, int] = field(default_factory=dict)
    properties: dict[tuple[Owner, str], int] = field(default_factory=dict)
    found: list[Diagnostic] = field(default_factory=list)

    def error(self, at: AnyType | Property, message: str, hint: str | None = None) -> None:
        self._report(at, message, "error", None, hint)

    def warn(self, at: AnyType | Property, message: str, code: str) -> None:
        self._report(at, message, "warning", code, None)

    def _report(
        self,
        at: AnyType | Property,
        message: str,
        severity: Severity,
        code: str | None,
        hint: str | None,
    ) -> None:
        made = Diagnostic.at(
            self.source, at.span, message, code=code, kind="identity", severity=severity, hint=hint
        )
        self.found.append(made)


def new_identity(catalog: Catalog, domain: str) -> SchemaIR:
    """Return the identity of a schema that creates a graph; rename hints have no effect.

    >>> from .catalog import Node
    >>> ir = new_identity(Catalog(nodes=(Node("B", ()), Node("A", ()))), "0" * 26)
    >>> ir.type_id("node", "A"), ir.type_id("node", "B"), ir.next_identity_id
    (1, 2, 5)
    """
    return _numbered(catalog, domain, 1, _Match(Source("", "")))


def inert_hints(catalog: Catalog, name: str = "schema.pg") -> tuple[Diagnostic, ...]:
    """Return a warning for each rename hint of a schema that creates a graph."""
    match = _Match(Source(name, catalog.source))
    for at, entity in _entities(catalog):
        if at.rename_from is not None:
            reason = f"the graph is new, so @rename_from on {entity} has no effect"
            match.warn(at, reason, INERT_HINT)
    return tuple(match.found)


def resolve_identity(accepted: SchemaIR, desired: Catalog, name: str = "schema.pg") -> Resolved:
    """Return the identity of a schema that replaces an accepted one.

    Types and properties with an accepted name keep their ids, then rename hints are followed; all
    others are new. Raise one `IdentityError` with every hint that cannot be followed.
    """
    match = _Match(Source(name, desired.source))
    _match_types(accepted, desired, match)
    by_number = {accepted_type.type_id: accepted_type for accepted_type in accepted.types}
    for one in types_of(desired):
        number = match.types.get((one.kind, one.name))
        if number is not None:
            _match_properties(accepted, by_number[number], one, match)
        elif one.rename_from is None:  # otherwise the hint on the type is wrong and was reported
            _report_hints_of_new(one, match)
    if any(diagnostic.severity == "error" for diagnostic in match.found):
        raise language_error(match.found, match.source)
    ir = _numbered(desired, accepted.domain, accepted.next_identity_id, match)
    return Resolved(ir, tuple(match.found))


def _entities(catalog: Catalog) -> Iterator[tuple[AnyType | Property, str]]:
    """Yield everything that can have its own rename hint, with its label for messages."""
    for one in types_of(catalog):
        yield one, _name(one)
        for prop in one.properties:
            if prop.declared_directly:
                yield prop, f"{_name(one)}.{prop.name}"


def _name(one: AnyType) -> str:
    return f"{one.kind}:{one.name}"


def _match_types(accepted: SchemaIR, desired: Catalog, match: _Match) -> None:
    known = {(identity.kind, identity.name): identity for identity in accepted.types}
    claimed: dict[int, str] = {}
    renamed = []
    for one in types_of(desired):
        exact = known.get((one.kind, one.name))
        if exact is None:
            renamed += [one] if one.rename_from is not None else []
            continue
        _keep_type(match, one, exact, claimed)
        if one.rename_from is not None:
            _warn_ignored(match, one, _name(one))
    for one in renamed:
        old = known.get((one.kind, str(one.rename_from)))
        if old is None:
            _report_unknown_type(match, one, known)
        elif old.type_id in claimed:
            _report_claim(match, one, f"{old.kind}:{old.name}", claimed[old.type_id])
        else:
            _keep_type(match, one, old, claimed)


def _keep_type(match: _Match, one: AnyType, old: TypeIdentity, claimed: dict[int, str]) -> None:
    claimed[old.type_id] = _name(one)
    match.types[one.kind, one.name] = old.type_id
    if old.table_incarnation_id is not None:
        match.tables[one.kind, one.name] = old.table_incarnation_id


def _warn_ignored(match: _Match, at: AnyType | Property, entity: str) -> None:
    reason = f'{entity} exists under this name, so @rename_from("{at.rename_from}") is ignored'
    match.warn(at, reason, IGNORED_HINT)


def _report_claim(match: _Match, at: AnyType | Property, old: str, holder: str) -> None:
    message = f"{old} is already claimed by {holder}"
    match.error(at, message, "only one declaration may continue it")


def _report_unknown_type(match: _Match, one: AnyType, known: dict[Owner, TypeIdentity]) -> None:
    other = next((kind for kind in KINDS if (kind, one.rename_from) in known), None)
    if other is None:
        reason = (
            f"@rename_from on {_name(one)}: no accepted {one.kind} is named '{one.rename_from}'"
        )
        match.error(one, reason, "remove the hint to declare a new type")
    else:
        reason = f"@rename_from on {_name(one)}: '{one.rename_from}' is an accepted {other}"
        match.error(
            one, reason, f"a rename cannot turn {_article(other)} into {_article(one.kind)}"
        )


def _article(kind: TypeKind) -> str:
    return f"a{'' if kind == 'node' else 'n'} {kind}"


def _match_properties(accepted: SchemaIR, old: TypeIdentity, one: AnyType, match: _Match) -> None:
    owner = (one.kind, one.name)
    known = dict(old.properties)
    claimed = {name: name for name in known if one.property(name) is not None}
    for prop in one.properties:
        if prop.name in known:
            match.properties[owner, prop.name] = known[prop.name]
            if prop.rename_from is not None and prop.declared_directly:
                _warn_ignored(match, prop, f"{_name(one)}.{prop.name}")
    for prop in one.properties:
        if prop.name not in known and prop.rename_from is not None:
            _follow_hint(accepted, one, prop, (known, claimed), match)


def _follow_hint(
    accepted: SchemaIR,
    one: AnyType,
    prop: Property,
    old: tuple[dict[str, int], dict[str, str]],
    match: _Match,
) -> None:
    known, claimed = old
    hint = str(prop.rename_from)
    if hint in known and hint not in claimed:
        claimed[hint] = prop.name
        match.properties[(one.kind, one.name), prop.name] = known[hint]
    elif not prop.declared_directly:
        return  # the hint is for the interface; this type may never have had the property
    elif hint in known:
        holder = f"{_name(one)}.{claimed[hint]}"
        _report_claim(match, prop, f"{_name(one)}.{hint}", holder)
    else:
        _report_unknown_property(accepted, one, prop, match)


def _report_unknown_property(
    accepted: SchemaIR, one: AnyType, prop: Property, match: _Match
) -> None:
    hint = str(prop.rename_from)
    elsewhere = [t for t in accepted.types if hint in dict(t.properties)]
    reason = f"@rename_from on {_name(one)}.{prop.name}: {_name(one)} has no property '{hint}'"
    advice = "remove the hint to declare a new property"
    if elsewhere:
        owner = f"{elsewhere[0].kind}:{elsewhere[0].name}"
        advice = f"'{hint}' belongs to {owner}; a rename cannot move a property between types"
    match.error(prop, reason, advice)


def _report_hints_of_new(one: AnyType, match: _Match) -> None:
    for prop in one.properties:
        if prop.rename_from is not None and prop.declared_directly:
            reason = f'@rename_from("{prop.rename_from}") on {_name(one)}.{prop.name}'
            message = f"{reason}: {_name(one)} is new and has no accepted properties"
            match.error(prop, message, "remove the hint, or name the old type with @rename_from")


def _numbered(catalog: Catalog, domain: str, start: int, match: _Match) -> SchemaIR:
    """Assign new ids: types first, then properties by owner, then tables."""
    ordered = canonical(catalog)
    owners: list[Owner] = [(one.kind, one.name) for one in types_of(ordered)]
    fields = {(one.kind, one.name): [p.name for p in one.properties] for one in types_of(ordered)}
    following = start
    for owner in owners:
        if owner not in match.types:
            match.types[owner], following = following, following + 1
    by_number = sorted(owners, key=lambda owner: match.types[owner])
    for owner in by_number:
        for name in fields[owner]:
            if (owner, name) not in match.properties:
                match.properties[owner, name], following = following, following + 1
    for owner in by_number:
        if owner[0] != "interface" and owner not in match.tables:
            match.tables[owner], following = following, following + 1
    return SchemaIR(
        domain, following, ordered, tuple(_identity(o, fields[o], match) for o in owners)
    )


def _identity(owner: Owner, fields: list[str], match: _Match) -> TypeIdentity:
    properties = tuple((name, match.properties[owner, name]) for name in fields)
    return TypeIdentity(*owner, match.types[owner], match.tables.get(owner), properties)
