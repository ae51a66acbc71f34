"""The catalog of schema findings: every `OG-…` code with its tier, severity and meaning.

This module contains only data. Every finding must have a code from this list. The families are DS (destructive), MF
(may fail on data), CD (constraint deletion), BC (backward-incompatible), NM (naming), VE (vectors and embeddings) and
ED (edge topology). The families OW (ownership), NL (non-linear branches) and LK (locks and cost) are reserved. NM codes
and codes from 200 up identify lint findings, and all other codes identify findings in migration plans.
"""

from typing import Literal

from omnigraph.errors.diagnostics import DiagnosticSeverity
from omnigraph.records.frozen import record

Tier = Literal["safe", "validated", "destructive"]


@record
class FindingCode:
    """An entry in the catalog. `tier` rates the risk of the change, and `severity` determines how it is reported."""

    code: str
    tier: Tier
    severity: DiagnosticSeverity
    meaning: str


_MIGRATION_CODES = (
    FindingCode("OG-DS-101", "destructive", "error", "a type that has entities is dropped"),
    FindingCode("OG-DS-102", "destructive", "warning", "a node type is dropped along with its nodes"),
    FindingCode("OG-DS-103", "destructive", "warning", "an edge type is dropped along with its edges"),
    FindingCode("OG-DS-104", "destructive", "warning", "a property is dropped along with its values"),
    FindingCode("OG-DS-105", "destructive", "warning", "a vector property is dropped along with its vectors"),
    FindingCode("OG-MF-103", "validated", "error", "a required property is added without a default"),
    FindingCode("OG-MF-104", "validated", "warning", "a nullable property becomes required"),
    FindingCode("OG-MF-106", "destructive", "error", "a property changes to an incompatible type"),
    FindingCode("OG-MF-107", "validated", "warning", "a `@unique` is added; existing entities must satisfy it"),
    FindingCode("OG-MF-108", "validated", "warning", "a `@range` is added; existing values must be within it"),
    FindingCode("OG-MF-109", "validated", "warning", "a `@check` is added; existing values must match its pattern"),
    FindingCode("OG-MF-110", "validated", "warning", "values are removed from an enum"),
    FindingCode("OG-MF-111", "validated", "warning", "the `@card` of an edge type gets narrower bounds"),
    FindingCode("OG-CD-101", "safe", "warning", "a constraint is removed; entities written later may violate it"),
    FindingCode("OG-CD-102", "safe", "info", "an index is removed; queries may slow down"),
    FindingCode("OG-BC-101", "destructive", "error", "the `@key` changes, which would change the id of every entity"),
    FindingCode("OG-BC-102", "destructive", "error", "the list of implemented interfaces changes"),
    FindingCode("OG-BC-103", "destructive", "error", "a property moves from a type to an interface, or vice versa"),
    FindingCode("OG-BC-104", "destructive", "error", "an interface is removed while nodes still implement it"),
    FindingCode("OG-BC-105", "destructive", "error", "an unknown annotation changes"),
    FindingCode("OG-BC-106", "destructive", "error", "the schemas differ in a way that no migration step covers"),
    FindingCode("OG-ED-101", "validated", "warning", "the endpoints of an edge type change"),
    FindingCode("OG-VE-101", "destructive", "error", "the `@embed` source of a vector changes"),
    FindingCode("OG-VE-102", "destructive", "error", "the `@embed` model of a vector changes"),
    FindingCode("OG-VE-103", "destructive", "error", "`@embed` is added to or removed from a vector"),
)

_LINT_CODES = (
    FindingCode("OG-NM-101", "safe", "warning", "a type name is not in PascalCase"),
    FindingCode("OG-NM-102", "safe", "warning", "a property name is not in snake_case"),
    FindingCode("OG-NM-103", "safe", "warning", "an unknown annotation is stored but has no effect"),
    FindingCode("OG-NM-104", "safe", "warning", "a constraint annotation without arguments has no effect"),
    FindingCode("OG-NM-105", "safe", "warning", "a rename hint has no effect"),
    FindingCode("OG-NM-106", "safe", "warning", "`@allow` refers to a code that does not exist"),
    FindingCode("OG-NM-107", "safe", "warning", "a `@unique` has no effect, because the `@key` implies it"),
    FindingCode("OG-VE-201", "safe", "warning", "a vector has neither `@index` nor `@embed`"),
    FindingCode("OG-ED-201", "safe", "info", "an edge type without `@card` can connect a node to itself"),
    FindingCode("OG-ED-202", "safe", "warning", "queries cannot traverse an edge type named `Not`"),
)

CODES: dict[str, FindingCode] = {entry.code: entry for entry in (*_MIGRATION_CODES, *_LINT_CODES)}
