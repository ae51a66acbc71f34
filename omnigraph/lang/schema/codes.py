"""The catalogue of schema findings: every `OG-…` code, its tier, severity and meaning.

Data only: whoever emits a code looks it up here, and a code that is not here does not exist.
Families: DS destructive, MF may fail on data, CD constraint deletion, BC backward-incompatible,
NM naming, VE vectors and embeddings, ED edge topology; OW ownership, NL non-linear branches and
LK locks and cost are reserved. Numbers below 200 are findings of a migration plan or of names,
the others of lint.
"""

from typing import Literal

from omnigraph.diagnostics import Severity
from omnigraph.record import record

Tier = Literal["safe", "validated", "destructive"]


@record
class Code:
    """One entry: `tier` says what the change risks, `severity` how loudly it is reported."""

    code: str
    tier: Tier
    severity: Severity
    meaning: str


_MIGRATION = (
    Code("OG-DS-101", "destructive", "error", "a whole populated graph type is dropped"),
    Code("OG-DS-102", "destructive", "warning", "a node type is dropped with its nodes"),
    Code("OG-DS-103", "destructive", "warning", "an edge type is dropped with its edges"),
    Code("OG-DS-104", "destructive", "warning", "a property is dropped with its values"),
    Code("OG-DS-105", "destructive", "warning", "a vector property is dropped with its vectors"),
    Code("OG-MF-103", "validated", "error", "a required property is added without a default"),
    Code("OG-MF-104", "validated", "warning", "a nullable property becomes required"),
    Code("OG-MF-106", "destructive", "error", "a property changes its type or loses values"),
    Code("OG-MF-107", "validated", "warning", "uniqueness is demanded of existing entities"),
    Code("OG-MF-108", "validated", "warning", "a range is demanded of existing values"),
    Code("OG-MF-109", "validated", "warning", "a pattern is demanded of existing values"),
    Code("OG-MF-110", "validated", "warning", "values are taken out of an enum"),
    Code("OG-MF-111", "validated", "warning", "the cardinality of an edge is tightened"),
    Code("OG-CD-101", "safe", "warning", "a constraint is removed; later data may break it"),
    Code("OG-CD-102", "safe", "info", "an index is removed; queries may slow down"),
    Code("OG-BC-101", "destructive", "error", "the key changes, and with it the id of every node"),
    Code("OG-BC-102", "destructive", "error", "the list of implemented interfaces changes"),
    Code("OG-BC-103", "destructive", "error", "a property moves between a type and an interface"),
    Code("OG-BC-104", "destructive", "error", "an interface is removed that nodes still implement"),
    Code("OG-BC-105", "destructive", "error", "an annotation changes whose meaning is unknown"),
    Code("OG-BC-106", "destructive", "error", "the schema differs in a way no step expresses"),
    Code("OG-ED-101", "validated", "warning", "an edge type gets other endpoints"),
    Code("OG-VE-101", "destructive", "error", "a vector is computed from another property"),
    Code("OG-VE-102", "destructive", "error", "a vector is computed by another model"),
    Code("OG-VE-103", "destructive", "error", "@embed is added to or removed from a vector"),
)

_LINT = (
    Code("OG-NM-101", "safe", "warning", "a type name is not in PascalCase"),
    Code("OG-NM-102", "safe", "warning", "a property name is not in snake_case"),
    Code("OG-NM-103", "safe", "warning", "an unknown annotation is kept but does nothing"),
    Code("OG-NM-104", "safe", "warning", "a constraint word without arguments does nothing"),
    Code("OG-NM-105", "safe", "warning", "a rename hint can have no effect"),
    Code("OG-NM-106", "safe", "warning", "`@allow` names a code that does not exist"),
    Code("OG-VE-201", "safe", "warning", "a vector has neither `@index` nor `@embed`"),
    Code("OG-ED-201", "safe", "info", "an edge may lead back to its own node, without `@card`"),
)

CODES: dict[str, Code] = {entry.code: entry for entry in (*_MIGRATION, *_LINT)}
