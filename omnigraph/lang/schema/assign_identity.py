"""Assign permanent ids to the types and properties in a schema.

Old and new declarations are matched by exact name first, then by `@rename_from`. A new graph's ids are sequential, and
types and properties added later get derived ids. Ids are never reused: a type that is dropped and declared again is a
new type. The functions are pure, so callers generate the ULID that becomes the graph's identity domain and pass it in.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from itertools import count

from omnigraph.errors import language_error
from omnigraph.errors.diagnostics import Diagnostic, DiagnosticSeverity, SourceText
from omnigraph.records.frozen import record

from .canonical_shape import canonicalize
from .catalog import Catalog, PropertyDefinition, TypeKind
from .derived_ids import derive_id
from .ir import TYPE_KINDS, CatalogType, SchemaIR, TypeIdentity, assigned_ids, catalog_types

INERT_HINT = "inert_initialization_rename_hint"
IGNORED_HINT = "ignored_exact_match_rename_hint"

TypeReference = tuple[TypeKind, str]
NewId = Callable[[str, int, str], int]  # (what is added, owner id, name)


@record
class ResolvedIdentity:
    """A schema with its ids, and warnings about rename hints that had no effect."""

    ir: SchemaIR
    warnings: tuple[Diagnostic, ...] = ()


@dataclass(slots=True)
class _IdentityMatch:
    """The state of the matching process: the ids to keep, and diagnostics about rename hints."""

    source: SourceText
    type_ids: dict[TypeReference, int] = field(default_factory=dict)
    table_ids: dict[TypeReference, int] = field(default_factory=dict)
    property_ids: dict[tuple[TypeReference, str], int] = field(default_factory=dict)
    diagnostics: list[Diagnostic] = field(default_factory=list)

    def add_error(self, subject: CatalogType | PropertyDefinition, message: str, hint: str | None = None) -> None:
        self._add_diagnostic(subject, message, "error", None, hint)

    def add_warning(self, subject: CatalogType | PropertyDefinition, message: str, code: str) -> None:
        self._add_diagnostic(subject, message, "warning", code, None)

    def _add_diagnostic(
        self,
        subject: CatalogType | PropertyDefinition,
        message: str,
        severity: DiagnosticSeverity,
        code: str | None,
        hint: str | None,
    ) -> None:
        diagnostic = Diagnostic.at_span(
            self.source, subject.span, message, code=code, kind="identity", severity=severity, hint=hint
        )
        self.diagnostics.append(diagnostic)


def new_identity(catalog: Catalog, domain: str) -> SchemaIR:
    """Return a new graph's schema with newly assigned ids. Rename hints have no effect.

    >>> from .catalog import NodeType
    >>> ir = new_identity(Catalog(nodes=(NodeType("B", ()), NodeType("A", ()))), "0" * 26)
    >>> ir.type_id("node", "A"), ir.type_id("node", "B"), ir.next_identity_id
    (1, 2, 5)
    """
    counter = count(1)
    ir = _assign_ids(catalog, domain, _IdentityMatch(SourceText("", "")), lambda *_: next(counter))
    return replace(ir, next_identity_id=next(counter))


def find_inert_hints(catalog: Catalog, source_name: str = "schema.pg") -> tuple[Diagnostic, ...]:
    """Return a warning for each rename hint in a new graph's schema."""
    match = _IdentityMatch(SourceText(source_name, catalog.source))
    for subject, subject_label in _rename_hint_subjects(catalog):
        if subject.rename_from is not None:
            warning_text = f"the graph is new, so @rename_from on {subject_label} has no effect"
            match.add_warning(subject, warning_text, INERT_HINT)
    return tuple(match.diagnostics)


def resolve_identity(
    accepted: SchemaIR, desired: Catalog, source_name: str = "schema.pg", retired_ids: frozenset[int] = frozenset()
) -> ResolvedIdentity:
    """Assign ids to a schema that replaces the accepted schema.

    Types and properties whose names are in the accepted schema keep their ids. Rename hints are applied next, and
    everything else is new. `retired_ids` are the ids of types and properties that were dropped earlier. If any hint
    cannot be applied, raise one `IdentityError` that lists all such hints.
    """
    match = _IdentityMatch(SourceText(source_name, desired.source))
    _match_types(accepted, desired, match)
    accepted_by_id = {accepted_type.type_id: accepted_type for accepted_type in accepted.type_identities}
    for declared_type in catalog_types(desired):
        type_id = match.type_ids.get((declared_type.kind, declared_type.name))
        if type_id is not None:
            _match_properties(accepted, accepted_by_id[type_id], declared_type, match)
        # If the type has a rename hint, the hint is invalid and has already been reported.
        elif declared_type.rename_from is None:
            _report_hints_of_new_type(declared_type, match)
    if any(diagnostic.severity == "error" for diagnostic in match.diagnostics):
        raise language_error(match.diagnostics, match.source)
    taken_ids = {*retired_ids, *assigned_ids(accepted)}

    def assign_new_id(kind: str, owner_id: int, name: str) -> int:
        new_id = derive_id(accepted.identity_domain, kind, owner_id, name, taken_ids)
        taken_ids.add(new_id)
        return new_id

    ir = _assign_ids(desired, accepted.identity_domain, match, assign_new_id)
    next_id = max(accepted.next_identity_id, *(assigned_id + 1 for assigned_id in assigned_ids(ir)), 1)
    return ResolvedIdentity(replace(ir, next_identity_id=next_id), tuple(match.diagnostics))


def _rename_hint_subjects(catalog: Catalog) -> Iterator[tuple[CatalogType | PropertyDefinition, str]]:
    """Yield every type and property that can have a rename hint, each with its label for messages."""
    for declared_type in catalog_types(catalog):
        yield declared_type, _type_label(declared_type)
        for definition in declared_type.properties:
            if definition.declared_directly:
                yield definition, f"{_type_label(declared_type)}.{definition.name}"


def _type_label(declared_type: CatalogType) -> str:
    return f"{declared_type.kind}:{declared_type.name}"


def _match_types(accepted: SchemaIR, desired: Catalog, match: _IdentityMatch) -> None:
    accepted_types = {(identity.kind, identity.name): identity for identity in accepted.type_identities}
    claimed_ids: dict[int, str] = {}
    renamed_types = []
    for declared_type in catalog_types(desired):
        same_name_type = accepted_types.get((declared_type.kind, declared_type.name))
        if same_name_type is None:
            renamed_types += [declared_type] if declared_type.rename_from is not None else []
            continue
        _keep_type_ids(match, declared_type, same_name_type, claimed_ids)
        if declared_type.rename_from is not None:
            _warn_ignored_hint(match, declared_type, _type_label(declared_type))
    for declared_type in renamed_types:
        accepted_type = accepted_types.get((declared_type.kind, str(declared_type.rename_from)))
        if accepted_type is None:
            _report_unknown_type(match, declared_type, accepted_types)
        elif accepted_type.type_id in claimed_ids:
            _report_double_claim(
                match, declared_type, f"{accepted_type.kind}:{accepted_type.name}", claimed_ids[accepted_type.type_id]
            )
        else:
            _keep_type_ids(match, declared_type, accepted_type, claimed_ids)


def _keep_type_ids(
    match: _IdentityMatch, declared_type: CatalogType, accepted_type: TypeIdentity, claimed_ids: dict[int, str]
) -> None:
    claimed_ids[accepted_type.type_id] = _type_label(declared_type)
    match.type_ids[declared_type.kind, declared_type.name] = accepted_type.type_id
    if accepted_type.table_incarnation_id is not None:
        match.table_ids[declared_type.kind, declared_type.name] = accepted_type.table_incarnation_id


def _warn_ignored_hint(match: _IdentityMatch, subject: CatalogType | PropertyDefinition, subject_label: str) -> None:
    hint_text = f'@rename_from("{subject.rename_from}")'
    warning_text = f"{subject_label} already exists, so {hint_text} is ignored"
    match.add_warning(subject, warning_text, IGNORED_HINT)


def _report_double_claim(
    match: _IdentityMatch, subject: CatalogType | PropertyDefinition, old_label: str, claimant_label: str
) -> None:
    message = f"{old_label} is already claimed by {claimant_label}"
    match.add_error(subject, message, "a type or property can be renamed only once")


def _report_unknown_type(
    match: _IdentityMatch, declared_type: CatalogType, accepted_types: dict[TypeReference, TypeIdentity]
) -> None:
    other_kind = next((kind for kind in TYPE_KINDS if (kind, declared_type.rename_from) in accepted_types), None)
    kind, old_name = declared_type.kind, declared_type.rename_from
    subject = f"@rename_from on {_type_label(declared_type)}"
    if other_kind is None:
        reason = f"{subject}: the accepted schema has no {kind} named '{old_name}'"
        advice = "remove the hint to declare a new type"
    else:
        reason = f"{subject}: '{old_name}' is {_with_article(other_kind)} in the accepted schema"
        advice = f"a rename cannot turn {_with_article(other_kind)} into {_with_article(kind)}"
    match.add_error(declared_type, reason, advice)


def _with_article(kind: TypeKind) -> str:
    return f"a{'' if kind == 'node' else 'n'} {kind}"


def _match_properties(
    accepted: SchemaIR, accepted_type: TypeIdentity, declared_type: CatalogType, match: _IdentityMatch
) -> None:
    type_reference = (declared_type.kind, declared_type.name)
    accepted_ids = dict(accepted_type.property_ids)
    claimed_names = {
        property_name: property_name
        for property_name in accepted_ids
        if declared_type.property(property_name) is not None
    }
    for definition in declared_type.properties:
        if definition.name in accepted_ids:
            match.property_ids[type_reference, definition.name] = accepted_ids[definition.name]
            if definition.rename_from is not None and definition.declared_directly:
                _warn_ignored_hint(match, definition, f"{_type_label(declared_type)}.{definition.name}")
    for definition in declared_type.properties:
        if definition.name not in accepted_ids and definition.rename_from is not None:
            _follow_rename_hint(accepted, declared_type, definition, (accepted_ids, claimed_names), match)


def _follow_rename_hint(
    accepted: SchemaIR,
    declared_type: CatalogType,
    definition: PropertyDefinition,
    accepted_properties: tuple[dict[str, int], dict[str, str]],
    match: _IdentityMatch,
) -> None:
    accepted_ids, claimed_names = accepted_properties
    old_name = str(definition.rename_from)
    if old_name in accepted_ids and old_name not in claimed_names:
        claimed_names[old_name] = definition.name
        match.property_ids[(declared_type.kind, declared_type.name), definition.name] = accepted_ids[old_name]
    elif not definition.declared_directly:
        return  # the hint is meant for the interface; this type may never have had the property
    elif old_name in accepted_ids:
        claimant_label = f"{_type_label(declared_type)}.{claimed_names[old_name]}"
        _report_double_claim(match, definition, f"{_type_label(declared_type)}.{old_name}", claimant_label)
    else:
        _report_unknown_property(accepted, declared_type, definition, match)


def _report_unknown_property(
    accepted: SchemaIR, declared_type: CatalogType, definition: PropertyDefinition, match: _IdentityMatch
) -> None:
    old_name = str(definition.rename_from)
    other_owners = [
        accepted_type for accepted_type in accepted.type_identities if old_name in dict(accepted_type.property_ids)
    ]
    type_label = _type_label(declared_type)
    reason = f"@rename_from on {type_label}.{definition.name}: {type_label} has no property '{old_name}'"
    advice = "remove the hint to declare a new property"
    if other_owners:
        owner_label = f"{other_owners[0].kind}:{other_owners[0].name}"
        advice = f"'{old_name}' belongs to {owner_label}; a rename cannot move a property between types"
    match.add_error(definition, reason, advice)


def _report_hints_of_new_type(declared_type: CatalogType, match: _IdentityMatch) -> None:
    type_label = _type_label(declared_type)
    for definition in declared_type.properties:
        if definition.rename_from is not None and definition.declared_directly:
            hint_text = f'@rename_from("{definition.rename_from}")'
            message = (
                f"{hint_text} on {type_label}.{definition.name}: {type_label} is new, so it has no properties to rename"
            )
            match.add_error(definition, message, "remove the hint, or add @rename_from to the type")


def _assign_ids(catalog: Catalog, domain: str, match: _IdentityMatch, assign_new_id: NewId) -> SchemaIR:
    """Assign new ids to types, then to each type's properties, then to tables. The caller sets `next_identity_id`."""
    canonical_catalog = canonicalize(catalog)
    type_references: list[TypeReference] = [
        (declared_type.kind, declared_type.name) for declared_type in catalog_types(canonical_catalog)
    ]
    property_names = {
        (declared_type.kind, declared_type.name): [definition.name for definition in declared_type.properties]
        for declared_type in catalog_types(canonical_catalog)
    }
    for type_reference in type_references:
        if type_reference not in match.type_ids:
            match.type_ids[type_reference] = assign_new_id(type_reference[0], 0, type_reference[1])
    references_by_id = sorted(type_references, key=lambda type_reference: match.type_ids[type_reference])
    for type_reference in references_by_id:
        for property_name in property_names[type_reference]:
            if (type_reference, property_name) not in match.property_ids:
                owner_id = match.type_ids[type_reference]
                match.property_ids[type_reference, property_name] = assign_new_id("property", owner_id, property_name)
    for type_reference in references_by_id:
        if type_reference[0] != "interface" and type_reference not in match.table_ids:
            match.table_ids[type_reference] = assign_new_id("table", match.type_ids[type_reference], "")
    return SchemaIR(
        domain,
        1,
        canonical_catalog,
        tuple(_build_type_identity(reference, property_names[reference], match) for reference in type_references),
    )


def _build_type_identity(
    type_reference: TypeReference, property_names: list[str], match: _IdentityMatch
) -> TypeIdentity:
    property_ids = tuple(
        (property_name, match.property_ids[type_reference, property_name]) for property_name in property_names
    )
    return TypeIdentity(
        *type_reference, match.type_ids[type_reference], match.table_ids.get(type_reference), property_ids
    )
