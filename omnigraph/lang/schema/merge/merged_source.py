"""Compose the text of a merged schema from the source text on both sides.

If a declaration has the same meaning on one side as in the merged schema, it keeps that side's text and comments.
Otherwise, the declaration is regenerated, and the same rule applies to each of its members. New declarations come last.
Rename hints are omitted, because the renames have already happened.
"""

from collections.abc import Callable, Iterable, Mapping

from omnigraph.lang.schema import format_schema, model
from omnigraph.records.frozen import record

from .print_slots import MemberKey, PrintedDeclaration, print_declaration
from .read_slots import constraint_slot, read_constraint
from .slots import ColumnReference, SchemaSlots, TypeSlots
from .source_parts import SourceDeclaration, SourceItem, SourceParts, remove_rename_hints


@record
class WrittenSchema:
    """A schema as written on one side: its slots and the parts of its text."""

    source: str
    slots: SchemaSlots
    parts: SourceParts

    def declaration(self, type_id: int) -> SourceDeclaration | None:
        """Return the declaration of a type as written, or None if this side does not declare the type."""
        type_slots = self.slots.get(type_id)
        return None if type_slots is None else self.parts.declarations.get((type_slots.kind, type_slots.name))

    def printed(self, type_id: int) -> PrintedDeclaration | None:
        """Return a type's canonical text with this side's names, or None if this side does not declare the type."""
        type_slots = self.slots.get(type_id)
        return None if type_slots is None else print_declaration(type_slots, self.slots, column_names(type_slots))

    def type_order(self) -> list[int]:
        """Return the type ids in the order of their declarations."""
        id_by_reference = {(slots.kind, slots.name): type_id for type_id, slots in self.slots.items()}
        return [id_by_reference[reference] for reference in self.parts.declarations]


def column_names(type_slots: TypeSlots) -> Callable[[ColumnReference], str]:
    """Return a function that maps a type's columns to their names in `type_slots`."""

    def column_name(reference: ColumnReference) -> str:
        known_name = type_slots.property_name(reference) if isinstance(reference, int) else None
        return known_name or str(reference)

    return column_name


def compose_source(
    base: WrittenSchema, ours: WrittenSchema, theirs: WrittenSchema, merged: Mapping[int, PrintedDeclaration]
) -> str:
    """Return the formatted text of the merged schema. `merged` contains each type's canonical text."""
    composer = _Composer(base, ours, theirs)
    first, second = (theirs, ours) if ours.source == base.source else (ours, theirs)
    type_order = list(dict.fromkeys([*first.type_order(), *second.type_order(), *merged]))
    text = ""
    for type_id in type_order:
        own_declaration = first.declaration(type_id)
        declaration = own_declaration or second.declaration(type_id)
        for comment_block in () if own_declaration is None else own_declaration.free_comments:
            text += f"\n\n{comment_block}\n\n"
        if type_id in merged:
            separator = "\n" if declaration is not None and declaration.joined else "\n\n"
            text += separator + composer.compose_declaration(type_id, merged[type_id])
    closing_text = "\n\n".join(first.parts.closing_comments)
    return format_schema(remove_rename_hints(f"{text}\n\n{closing_text}"), "merged.pg")


class _Composer:
    def __init__(self, base: WrittenSchema, ours: WrittenSchema, theirs: WrittenSchema) -> None:
        self._base = base
        self._ours = ours
        self._theirs = theirs

    def compose_declaration(self, type_id: int, merged: PrintedDeclaration) -> str:
        candidates = [
            written.declaration(type_id)
            for written in (self._ours, self._theirs)
            if _same_meaning(written.printed(type_id), merged)
        ]
        declarations = [declaration for declaration in candidates if declaration is not None]
        base_declaration = self._base.declaration(type_id)
        if declarations:
            base_item = None if base_declaration is None else base_declaration.item
            return choose_item([declaration.item for declaration in declarations], base_item).full_text()
        return self._print_anew(type_id, merged)

    def _print_anew(self, type_id: int, merged: PrintedDeclaration) -> str:
        written_members = [_members_by_key(written, type_id) for written in (self._ours, self._theirs, self._base)]
        printed = [written.printed(type_id) for written in (self._ours, self._theirs)]
        member_order = dict.fromkeys(key for members in written_members[:2] for key in members if key in merged.members)
        lines = [
            _member_text(key, merged.members[key], written_members, printed)
            for key in dict.fromkeys([*member_order, *merged.members])
        ]
        declarations = [written.declaration(type_id) for written in (self._ours, self._theirs)]
        declaration = next((written for written in declarations if written is not None), None)
        closing_comments = () if declaration is None else declaration.closing_comments
        text = "\n".join((f"{merged.header} {{", *lines, *closing_comments, "}"))
        return text if declaration is None else declaration.item.full_text(text)


def _same_meaning(written: PrintedDeclaration | None, merged: PrintedDeclaration) -> bool:
    return written is not None and written.header == merged.header and dict(written.members) == dict(merged.members)


def choose_item(candidates: list[SourceItem], base_item: SourceItem | None) -> SourceItem:
    """Return the first item that differs from the base, or the first item if none differs.

    All candidates must have the same meaning.
    """
    return next((candidate for candidate in candidates if candidate != base_item), candidates[0])


def _members_by_key(written: WrittenSchema, type_id: int) -> dict[MemberKey, SourceItem]:
    declaration, type_slots = written.declaration(type_id), written.slots.get(type_id)
    members: dict[MemberKey, SourceItem] = {}
    if declaration is None or type_slots is None:
        return members
    for member, item in declaration.members:
        members.setdefault(_member_key(member, type_slots), item)
    return members


def _member_key(member: model.DeclarationMember, type_slots: TypeSlots) -> MemberKey:
    if isinstance(member, model.Property):
        return "property", type_slots.property_ids[member.name.text]
    return "constraint", *constraint_slot(read_constraint(member), type_slots.property_ids)


def _member_text(
    key: MemberKey,
    merged_text: str,
    written_members: list[dict[MemberKey, SourceItem]],
    printed: Iterable[PrintedDeclaration | None],
) -> str:
    base_item = written_members[2].get(key)
    same_meaning = [
        members[key]
        for members, declaration in zip(written_members, printed, strict=False)
        if key in members and declaration is not None and declaration.members.get(key) == merged_text
    ]
    if same_meaning:
        return choose_item(same_meaning, base_item).full_text()
    any_item = next((members[key] for members in written_members if key in members), None)
    return merged_text if any_item is None else any_item.full_text(merged_text)
