"""Merge two schemas that derive from the same base.

This module is the package's entry point. It reads the slots from the three schemas, resolves conflicts, and generates
the text of the merged schema. It then checks that text like any other schema and assigns ids. The merge reads no data
and changes nothing.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from omnigraph.errors import InternalError
from omnigraph.errors.diagnostics import SourceText
from omnigraph.lang.schema import diagnose_schema
from omnigraph.lang.schema.canonical_shape import canonicalize
from omnigraph.lang.schema.catalog import Catalog
from omnigraph.lang.schema.check import check
from omnigraph.lang.schema.ir import SchemaIR, assigned_ids
from omnigraph.lang.schema.ir_soundness import find_unsoundness
from omnigraph.lang.schema.parse import parse

from .conflicts import ConflictLog, Decide, DroppedEdit, SchemaConflict, SchemaMerge, SchemaVersion, SourcedSchema
from .drop_conflicts import find_broken_reference, find_contradicted_drop
from .identity import MergedIdentity, find_key_order_conflicts
from .merge_sides import MergeSides, merged_column_name
from .merge_types import merge_types
from .merged_source import WrittenSchema, column_names, compose_source
from .name_conflicts import find_name_conflict, find_unlike_addition
from .numbering import (
    CommonNumbering,
    find_repeated_number,
    number_like_ours,
    restore_numbers,
    separate_unlike_properties,
)
from .print_slots import PrintedDeclaration, print_declaration
from .read_slots import declared_body_constraints, implied_body_constraints, read_slots
from .slots import ColumnReference, SchemaSlots
from .source_parts import read_source_parts


class _EveryName:
    """A collection that contains every name. It exempts the names in accepted schemas from the length limit."""

    def __contains__(self, name: object) -> bool:
        return True


def merge_schemas(
    base: SourcedSchema,
    ours: SourcedSchema,
    theirs: SourcedSchema,
    decide: Decide | None = None,
    dropped_edits: Sequence[DroppedEdit] = (),
) -> SchemaMerge:
    """Merge two schemas with a common base. Conflicts are returned, never raised.

    Types and properties are matched by id: base ids and derived ids identify the same type or property in all three
    schemas. Additions that an earlier release made on a branch have sequential ids, which are renumbered (see
    `SchemaMerge.their_numbers`).

    `decide` is called with each conflict and returns `ours`, `theirs`, `base` or None. If it returns `base`, neither
    change is made. If it returns None, the conflict stays open.

    `dropped_edits` are values that one side wrote to types or properties that the other side dropped. Such edits turn
    the drop into a conflict.

    >>> from omnigraph.lang.schema import compile_schema
    >>> from omnigraph.lang.schema.assign_identity import new_identity, resolve_identity
    >>> from omnigraph.lang.schema.merge import SchemaVersion
    >>> text = "node Lamp { watts: I32 }"
    >>> base = SchemaVersion(text, new_identity(compile_schema(text), "0" * 26))
    >>> def change(text):
    ...     return SchemaVersion(text, resolve_identity(base.ir, compile_schema(text)).ir)
    >>> ours = change("node Lamp { watts: I64 }")
    >>> theirs = change("node Lamp { watts: I32  color: String? }")
    >>> print(merge_schemas(base, ours, theirs).source, end="")
    node Lamp {
        watts: I64
        color: String?
    }
    """
    numbering = number_like_ours(base.ir, ours.ir, theirs.ir)
    separated = separate_unlike_properties(numbering.base, ours.ir, numbering.theirs)
    numbering = replace(numbering, base=separated.base, theirs=separated.theirs)
    dropped_edits = [_renumber_edit(edit, separated.their_numbers) for edit in dropped_edits]
    merged = _merge_numbered(base, ours, theirs, numbering, decide, dropped_edits)
    merged_ir, their_ir = (
        restore_numbers(ir, numbering.theirs.next_identity_id) for ir in (merged.ir, merged.their_ir)
    )
    return replace(merged, ir=merged_ir, their_ir=their_ir)


def _renumber_edit(edit: DroppedEdit, their_numbers: Mapping[int, int]) -> DroppedEdit:
    if edit.side == "ours" or edit.property_id is None:
        return edit
    return replace(edit, property_id=their_numbers.get(edit.property_id, edit.property_id))


def _merge_numbered(
    base: SourcedSchema,
    ours: SourcedSchema,
    theirs: SourcedSchema,
    numbering: CommonNumbering,
    decide: Decide | None,
    dropped_edits: Sequence[DroppedEdit],
) -> SchemaMerge:
    our_version = SchemaVersion(ours.source, ours.ir)
    base_version, their_version = (
        SchemaVersion(base.source, numbering.base),
        SchemaVersion(theirs.source, numbering.theirs),
    )
    if not dropped_edits and _same_schema(their_version, base_version):
        return _take_side(our_version, numbering)
    if not dropped_edits and _same_schema(our_version, base_version):
        return _take_side(their_version, numbering)
    versions = (base_version, our_version, their_version)
    return _SchemaMerger(versions, theirs.ir, numbering, ConflictLog(decide), dropped_edits).merge()


def _take_side(version: SchemaVersion, numbering: CommonNumbering) -> SchemaMerge:
    ir = replace(version.ir, next_identity_id=numbering.theirs.next_identity_id)
    return SchemaMerge(version.source, ir, numbering.theirs, their_numbers=_changed_numbers(numbering.their_numbers))


def _changed_numbers(numbers: Mapping[int, int]) -> tuple[tuple[int, int], ...]:
    return tuple(sorted((old_number, number) for old_number, number in numbers.items() if old_number != number))


def _same_schema(first: SourcedSchema, second: SourcedSchema) -> bool:
    same_meaning = (first.ir.catalog, first.ir.type_identities) == (second.ir.catalog, second.ir.type_identities)
    return same_meaning and first.source == second.source


class _SchemaMerger:
    """A merge in progress: the three schemas with common ids, and the conflict log."""

    def __init__(
        self,
        versions: tuple[SchemaVersion, SchemaVersion, SchemaVersion],
        their_original_ir: SchemaIR,
        numbering: CommonNumbering,
        log: ConflictLog,
        dropped_edits: Sequence[DroppedEdit] = (),
    ) -> None:
        self._dropped_edits = dropped_edits
        self._our_version = versions[1]
        self._log = log
        self._numbering = numbering
        self._their_original_ir = their_original_ir
        self._base, self._ours, self._theirs = (_read_schema(version.source, version.ir) for version in versions)

    def merge(self) -> SchemaMerge:
        sides, merged = self._settle_conflicts()
        printed = _print_schema(sides, merged)
        catalog = self._compile(printed)
        if catalog is None:
            return self._keep_ours()
        taken_ids = frozenset({*assigned_ids(self._our_version.ir), *assigned_ids(self._numbering.theirs)})
        identity = MergedIdentity(sides, merged, self._our_version.ir.identity_domain, taken_ids)
        ir = identity.assign(catalog)
        unsoundness = find_unsoundness(ir)
        if unsoundness is not None:
            identity.conflicts.append(SchemaConflict("unresolvable", "schema", reason=unsoundness))
        repeated = find_repeated_number(ir)
        if repeated is not None:
            reason = "the branches added different properties under this name, and one branch has renamed its property"
            identity.conflicts.append(SchemaConflict("unresolvable", repeated, reason=reason))
        identity.conflicts += find_key_order_conflicts(sides, self._our_version.ir, self._their_original_ir)
        for conflict in identity.conflicts:
            self._log.add_unresolvable(conflict)
        if identity.conflicts:
            return self._keep_ours()
        return self._outcome(self._compose_source(printed, catalog), ir)

    def _settle_conflicts(self) -> tuple[MergeSides, SchemaSlots]:
        """Merge the slots again after each structural decision, until no structural conflict remains."""
        sides = MergeSides(self._base.slots, self._ours.slots, self._theirs.slots)
        for _ in range(_pass_limit(sides)):
            self._log.start_pass()
            contradiction = find_contradicted_drop(sides, self._dropped_edits) or find_unlike_addition(sides)
            if contradiction is not None:
                sides = contradiction.settle(self._log, sides)
                continue
            merged = merge_types(self._log, sides.base, sides.ours, sides.theirs)
            structural = find_broken_reference(sides, merged) or find_name_conflict(sides, merged)
            if structural is None:
                return sides, merged
            sides = structural.settle(self._log, sides)
        raise InternalError(reason="resolving the schema merge conflicts did not terminate")

    def _compile(self, printed: dict[int, PrintedDeclaration]) -> Catalog | None:
        """Return the merged schema's catalog, or None if it is invalid.

        Errors from the checker become conflicts.
        """
        text = "\n".join(declaration.text() for declaration in printed.values())
        catalog, diagnostics = diagnose_schema(text, "merged.pg", existing_names=_EveryName())
        for diagnostic in diagnostics:
            subject = _subject_at(printed, diagnostic.start)
            self._log.add_unresolvable(SchemaConflict("unresolvable", subject, reason=diagnostic.message))
        return None if catalog is None else canonicalize(catalog)

    def _compose_source(self, printed: dict[int, PrintedDeclaration], catalog: Catalog) -> str:
        source = compose_source(self._base, self._ours, self._theirs, printed)
        composed_catalog, _ = diagnose_schema(source, "merged.pg", existing_names=_EveryName())
        if composed_catalog is None or canonicalize(composed_catalog) != catalog:
            raise InternalError(reason="the printed form of the merged schema does not compile to the same schema")
        return source

    def _keep_ours(self) -> SchemaMerge:
        next_id = self._numbering.theirs.next_identity_id
        return self._outcome(self._our_version.source, replace(self._our_version.ir, next_identity_id=next_id))

    def _outcome(self, source: str, ir: SchemaIR) -> SchemaMerge:
        known_irs = (ir, self._our_version.ir, self._numbering.theirs)
        next_id = max(known_ir.next_identity_id for known_ir in known_irs)
        return SchemaMerge(
            source,
            replace(ir, next_identity_id=next_id),
            replace(self._numbering.theirs, next_identity_id=next_id),
            self._log.open_conflicts(),
            self._log.decided_conflicts(),
            _changed_numbers(self._numbering.their_numbers),
        )


def _pass_limit(sides: MergeSides) -> int:
    """Return an upper bound on the number of passes. Each decision drops, restores, renames or redefines one item."""
    schemas = (sides.base, sides.ours, sides.theirs)
    entity_count = sum(1 + len(slots.properties) for schema in schemas for slots in schema.values())
    return 4 * entity_count + 1


def _read_schema(source: str, ir: SchemaIR) -> WrittenSchema:
    """Return a schema's slots and text. If the text does not match the accepted form, it is regenerated."""
    parsed_schema = parse(SourceText("schema.pg", source))
    source_catalog, errors = check(parsed_schema, _EveryName())
    if parsed_schema.diagnostics or errors or canonicalize(source_catalog) != ir.catalog:
        source, source_catalog = _print_catalog(ir), ir.catalog
        parsed_schema = parse(SourceText("schema.pg", source))
    slots = read_slots(ir, declared_body_constraints(parsed_schema.declarations), source_catalog)
    return WrittenSchema(source, slots, read_source_parts(source, parsed_schema.declarations))


def _print_catalog(ir: SchemaIR) -> str:
    slots = read_slots(ir, implied_body_constraints(ir.catalog), ir.catalog)
    return "\n".join(
        print_declaration(type_slots, slots, column_names(type_slots)).text() for type_slots in slots.values()
    )


def _print_schema(sides: MergeSides, merged: SchemaSlots) -> dict[int, PrintedDeclaration]:
    def name_columns(type_id: int) -> Callable[[ColumnReference], str]:
        return lambda column: merged_column_name(sides, merged, type_id, column) or f"missing_{column}"

    return {type_id: print_declaration(slots, merged, name_columns(type_id)) for type_id, slots in merged.items()}


def _subject_at(printed: dict[int, PrintedDeclaration], offset: int) -> str:
    """Return the label for the declaration at an offset in the printed schema."""
    for declaration in printed.values():
        if offset <= len(declaration.text()):
            kind, name = declaration.header.split(" ")[:2]
            return f"{kind}:{name.rstrip(':')}"
        offset -= len(declaration.text()) + 1
    return "schema"
