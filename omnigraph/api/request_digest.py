"""Digest write requests, to determine whether a repeated idempotency key belongs to the same request.

A request's canonical form is a string that depends only on the request itself, never on the names of classes and fields
in this code. Records written by an earlier release must still match, so a released form must never change. This form is
version 1, whose digests have no prefix. A new form needs the next version number and a prefix for its digests.
"""

import hashlib
from dataclasses import fields
from datetime import date
from typing import Any

from omnigraph.lang.query import plan
from omnigraph.values import PropertyType, ScalarType

# For each class, its name in the canonical form, followed by its field names in definition order.
_FORM_NAMES: dict[type, str] = {
    plan.WritePlan: "WritePlan statements",
    plan.InsertRow: "InsertRow kind type_name assignments",
    plan.UpsertRow: "UpsertRow kind type_name assignments",
    plan.PatchRow: "PatchRow kind type_name assignments",
    plan.DeleteRows: "DeleteRows kind type_name where cascades",
    plan.Assign: "Assign name value",
    plan.Constant: "Constant value type",
    plan.Parameter: "Parameter name type",
    plan.PropertyValue: "PropertyValue variable name type",
    plan.SystemValue: "SystemValue variable field type",
    plan.Score: "Score ranking",
    plan.Aggregate: "Aggregate function argument distinct",
    plan.Arithmetic: "Arithmetic first steps type",
    plan.Negative: "Negative operand type",
    plan.ScalarCall: "ScalarCall function arguments type",
    plan.Case: "Case branches default type",
    plan.Truth: "Truth value",
    plan.Compare: "Compare left operator right",
    plan.TextTest: "TextTest left operator right",
    plan.InList: "InList operand items",
    plan.IsNull: "IsNull operand negated",
    plan.OfType: "OfType variable type_name",
    plan.TextSearch: "TextSearch function field query max_edits",
    plan.And: "And items",
    plan.Or: "Or items",
    plan.Not: "Not item",
    plan.Bm25: "Bm25 field query",
    plan.Nearest: "Nearest field query model",
    plan.Fuse: "Fuse first second k",
    PropertyType: "PropertyType scalar nullable is_list enum_values vector_dim",
    plan.MatchedDelete: "MatchedDelete kind type_name matched cascades",
}

# Classes whose form omits fields with default values, so that adding a field with a default does not change existing
# digests.
_SPARSE_FORM_NAMES: dict[type, str] = {
    plan.UpdateRows: "UpdateRows type_name assignments where kind",
    plan.MatchedUpdate: "MatchedUpdate type_name assignments matched kind",
    plan.Entity: "Entity variable type_name edge_types",
    plan.ReadPlan: "ReadPlan operators columns variables aggregated distinct order ranking limit offset having",
    plan.PlanColumn: "PlanColumn name value type",
    plan.SortKey: "SortKey value descending column",
    plan.NodeScan: "NodeScan variable type_name filters implementers",
    plan.PlanStep: "PlanStep edge_type direction",
    plan.Expand: "Expand source target steps target_type min_hops max_hops target_filters edge_variable edge_test",
    plan.CloseCycle: "CloseCycle left right",
    plan.Filter: "Filter predicate",
    plan.AntiJoin: "AntiJoin outer inner",
    plan.LeftJoin: "LeftJoin outer inner introduced",
    plan.EdgeTest: "EdgeTest variable predicates",
    plan.FindPaths: "FindPaths source target path mode steps node_type min_hops max_hops closing backward"
    " target_filters edge_test cost",
    plan.PathEntity: "PathEntity variable type_name has_cost",
    plan.PathValue: "PathValue variable function type",
}


def digest_request(request: object) -> str:
    """Return a request's digest. A request consists of records, a write plan with its arguments, or a list of these.

    >>> digest_request(("append", [("Person", [[("name", "'ann'")]])]))[:16]
    '5784f9f6d4e3190e'
    """
    return hashlib.sha256(canonical_text(request).encode()).hexdigest()


def canonical_text(value: object) -> str:
    """Return a request in its canonical form.

    Raises:
        TypeError: a value has no canonical form. A `repr` is not used, because it could change in the next release.

    >>> canonical_text(("append", [1, None, "x"], (2.5,)))
    "('append', [1, None, 'x'], (2.5,))"

    """
    if value is None or isinstance(value, str | bytes | int | float | date):
        return repr(value)
    if isinstance(value, ScalarType):
        return f"<ScalarType.{value.value.upper()}: {value.value!r}>"
    if isinstance(value, list):
        return f"[{', '.join(map(canonical_text, value))}]"
    if isinstance(value, tuple):
        comma = "," if len(value) == 1 else ""
        return f"({', '.join(map(canonical_text, value))}{comma})"
    return _record_text(value)


def _record_text(value: Any) -> str:
    names = _FORM_NAMES.get(type(value)) or _SPARSE_FORM_NAMES.get(type(value))
    if names is None:
        raise TypeError(f"{type(value).__name__} has no canonical form in a request digest")
    class_name, *field_names = names.split()
    compared_fields = [attribute for attribute in fields(value) if attribute.compare]
    members = zip(field_names, compared_fields, strict=True)
    omits_defaults = type(value) in _SPARSE_FORM_NAMES
    shown = [
        f"{name}={canonical_text(item)}"
        for name, attribute in members
        if (item := getattr(value, attribute.name)) != attribute.default or not omits_defaults
    ]
    return f"{class_name}({', '.join(shown)})"
