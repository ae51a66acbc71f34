"""The catalogue of schema findings: every `OG-…` code with its tier, severity and meaning.

Data only: code that reports a finding looks its code up here; a code that is not listed does not
exist. Families: DS destructive, MF may fail on data, CD constraint deletion, BC
backward-incompatible, NM naming, VE vectors and embeddings, ED edge topology; OW ownership, NL
non-linear branches and LK locks and cost are reserved. Numbers below 200 are findings of a
migration plan or of names, the others of lint.
"""

from typing import Literal

from omnigraph.diagnostics import Severity
from omnigraph.record import record

Tier = Literal["safe", "validated", "destructive"]


@record
class Code:
    """One entry: `tier` states what the change risks, `severity` how it is reported."""

    code: str
    tier: Tier
    severity: Severity
    meaning: str


_MIGRATION = (
    Code("OG-DS-101", "destructive", "error", "a populated graph type is dropped entirely"),
    Code("OG-DS-102", "destructive", "warning", "a node type is dropped with its nodes"),
    Code("OG-DS-103", "destructive", "warning", "an edge type is dropped with its edges"),
    Code("OG-DS-104", "destructive", "warning", "a property is dropped with its values"),
    Code("OG-DS-105", "destructive", "warning", "a vector property is dropped with its vectors"),
    Code("OG-MF-103", "validated", "error", "a required property is added without a default"),
    Code("OG-MF-104", "validated", "warning", "a nullable property becomes required"),
    Code("OG-MF-106", "destructive", "error", "a property changes its type or loses values"),
    Code("OG-MF-107", "validated", "warning", "existing entities must become unique"),
    Code("OG-MF-108", "validated", "warning", "existing values must satisfy a range"),
    Code("OG-MF-109", "validated", "warning", "existing values must match a pattern"),
    Code("OG-MF-110", "validated", "warning", "values are removed from an enum"),
    Code("OG-MF-111", "validated", "warning", "the cardinality of an edge type is tightened"),
    Code("OG-CD-101", "safe", "warning", "a constraint is removed; later data may violate it"),
    Code("OG-CD-102", "safe", "info", "an index is removed; queries may slow down"),
    Code("OG-BC-101", "destructive", "error", "the key changes, and with it the id of every node"),
    Code("OG-BC-102", "destructive", "error", "the list of implemented interfaces changes"),
    Code("OG-BC-103", "destructive", "error", "a property moves between a type and an interface"),
    Code("OG-BC-104", "destructive", "error", "an interface is removed that nodes still implement"),
    Code("OG-BC-105", "destructive", "error", "an annotation with unknown meaning changes"),
    Code("OG-BC-106", "destructive", "error", "the schemas differ in a way that no step expresses"),
    Code("OG-ED-101", "validated", "warning", "the endpoints of an edge type change"),
    Code("OG-VE-101", "destructive", "error", "the source property of a vector changes"),
    Code("OG-VE-102", "destructive", "error", "the embedding model of a vector changes"),
    Code("OG-VE-103", "destructive", "error", "@embed is added to or removed from a vector"),
)

_LINT = (
    Code("OG-NM-101", "safe", "warning", "a type name is not in PascalCase"),
    Code("OG-NM-102", "safe", "warning", "a property name is not in snake_case"),
    Code("OG-NM-103", "safe", "warning", "an unknown annotation is stored but has no effect"),
    Code("OG-NM-104", "safe", "warning", "a constraint annotation without arguments has no effect"),
    Code("OG-NM-105", "safe", "warning", "a rename hint has no effect"),
    Code("OG-NM-106", "safe", "warning", "`@allow` names a code that does not exist"),
    Code("OG-VE-201", "safe", "warning", "a vector has neither `@index` nor `@embed`"),
    Code("OG-ED-201", "safe", "info", "an edge without `@card` may connect a node to itself"),
)

CODES: dict[str, Code] = {entry.code: entry for entry in (*_MIGRATION, *_LINT)}
