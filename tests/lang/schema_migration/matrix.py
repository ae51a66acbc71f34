"""The matrix of changes: the effect of each property change on each kind of property.

Reads `matrix.txt` and works out what its rows should be. In the schemas of a section `{T}` is the
type, `{D}` and `{E}` are two values of it; `interface { … } ` before the body gives the type an
interface. A kind is one of KINDS; a section without `{T}` has no kinds.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from omnigraph.errors import IdentityError, LanguageError
from omnigraph.lang.schema import compile_schema
from omnigraph.lang.schema.catalog import Catalog
from omnigraph.lang.schema.migrate import MigrationStep, UnsupportedChange, plan_migration

FILE = Path(__file__).parents[2] / "cases" / "migrate" / "matrix.txt"
OWNERS = ("node", "edge")
KINDS = {  # type, and two values for a default
    "String": ("String", '"x"', '"y"'),
    "Bool": ("Bool", "true", "false"),
    "I32": ("I32", "1", "2"),
    "I64": ("I64", "1", "2"),
    "U32": ("U32", "1", "2"),
    "U64": ("U64", "1", "2"),
    "F32": ("F32", "0.5", "1.5"),
    "F64": ("F64", "0.5", "1.5"),
    "Date": ("Date", '"2020-01-01"', '"2020-01-02"'),
    "DateTime": ("DateTime", '"2020-01-01T00:00:00Z"', '"2020-01-02T00:00:00Z"'),
    "Blob": ("Blob", '"x"', '"y"'),
    "Vector": ("Vector(2)", "1", "2"),
    "[String]": ("[String]", '"x"', '"y"'),
    "[I32]": ("[I32]", "1", "2"),
    "enum": ("enum(a, b)", "a", "b"),
}
_INTERFACE = re.compile(r"interface (\{.*?\}) ?")


@dataclass(frozen=True)
class Section:
    """One change: its name, the two bodies, and the rows that are written below them."""

    name: str
    before: str
    after: str
    rows: tuple[str, ...]

    def __str__(self) -> str:
        return self.name


def read_sections() -> list[Section]:
    """Every section of the matrix."""
    _, *texts = re.split(r"^\[(?=[^\]]+\]\n)", FILE.read_text("utf-8"), flags=re.MULTILINE)
    return [_section(text) for text in texts]


def _section(text: str) -> Section:
    name, _, rest = text.partition("]\n")
    lines = [line for line in rest.splitlines() if line and not line.startswith("#")]
    before, after = (line.partition(":")[2].strip() for line in lines[:2])
    return Section(name, before, after, tuple(lines[2:]))


def rows(section: Section) -> list[str]:
    """The rows that the section should have: owner, outcome, kinds."""
    kinds = list(KINDS) if "{T}" in section.before + section.after else ["-"]
    found: dict[str, dict[str, list[str]]] = {owner: {} for owner in OWNERS}
    for owner in OWNERS:
        for kind in kinds:
            found[owner].setdefault(_outcome(section, owner, kind), []).append(kind)
    return list(_rendered(found, kinds))


def _rendered(found: dict[str, dict[str, list[str]]], kinds: list[str]) -> Iterator[str]:
    for owner in OWNERS:
        for outcome, held in found[owner].items():
            shared = all(found[other].get(outcome) == held for other in OWNERS)
            if shared and owner != OWNERS[0]:
                continue
            names = "all" if held == kinds and len(kinds) > 1 else " ".join(held)
            yield f"{'both' if shared else owner} | {outcome} | {names}"


def _outcome(section: Section, owner: str, kind: str) -> str:
    before = _compiled(_schema(owner, section.before, kind))
    if before is None:
        return "no such schema"
    after = _compiled(_schema(owner, section.after, kind))
    if after is None:
        return "invalid schema"
    try:
        steps = plan_migration(before, after).steps
    except IdentityError:
        return "identity error"
    return ", ".join(_word(step) for step in steps) or "nothing"


def _word(step: MigrationStep) -> str:
    name = "refused" if isinstance(step, UnsupportedChange) else step.kind
    is_interface = getattr(step, "type_kind", "") == "interface"
    return " ".join(filter(None, ["interface" if is_interface else "", name, step.code]))


@cache
def _compiled(text: str) -> Catalog | None:
    try:
        return compile_schema(text)
    except LanguageError:
        return None


def _schema(owner: str, body: str, kind: str) -> str:
    if kind != "-":
        for mark, value in zip(("{T}", "{D}", "{E}"), KINDS[kind], strict=True):
            body = body.replace(mark, value)
    interface = _INTERFACE.match(body)
    body = body[interface.end() :] if interface else body
    implements = " implements I" if interface else ""
    head = f"interface I {interface[1]}\n" if interface else ""
    if owner == "node":
        return f"{head}node A{implements} {{ {body} }}"
    return f"{head}node A {{}}\nedge E: A -> A{implements} {{ {body} }}"
