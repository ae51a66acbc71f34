"""Errors: the whole catalog as a table, and guarantees of every error."""

import copy
import inspect
import json
import pickle
import re
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from omnigraph import errors
from omnigraph.errors import (
    BranchNotFound,
    ChangeCursorRejected,
    ConcurrentCommit,
    Conflict,
    EntityConflict,
    ExternalBlobPolicyError,
    GraphNotInitialized,
    InitializationIndeterminate,
    InputError,
    InternalError,
    KeyConflict,
    LanguageError,
    MergeConflict,
    OmnigraphError,
    ParameterError,
    ParseError,
    PermissionDenied,
    QueryExecutionError,
    ResourceLimitExceeded,
    ServerError,
    StorageError,
    TooManyRequests,
    Transient,
    TypeCheckError,
    UniqueViolation,
    UsageError,
    VersionConflict,
    language_error,
    redact_text,
    redact_uri,
)
from omnigraph.errors.diagnostics import Diagnostic, DiagnosticKind, SourceText, Span

CATALOG = Path(__file__).parents[1] / "cases" / "errors" / "catalog.txt"
FAMILIES = {"OmnigraphError", "ClientError", "ServerError", "Conflict", "Transient", "LanguageError"}
CLASSES = {
    name: found for name, found in vars(errors).items() if inspect.isclass(found) and issubclass(found, OmnigraphError)
}


class Row(NamedTuple):
    name: str
    family: str
    status: int | None
    http_code: str | None
    effect: str
    retry: str
    exits: str
    facts: dict[str, Any]
    body: dict[str, Any]

    def error(self) -> OmnigraphError:
        return CLASSES[self.name](**self.facts)


def read(line: str) -> Row:
    name, family, status, code, fate, exits, outcome = line.split(" | ", 6)
    effect, retry = fate.split("/")
    facts, body = outcome.split(" => ")
    number = None if status == "-" else int(status)
    word = None if code == "-" else code
    return Row(name, family, number, word, effect, retry, exits, json.loads(facts), json.loads(body))


LINES = CATALOG.read_text(encoding="utf-8").splitlines()
ROWS = [read(line) for line in LINES if line and not line.startswith("#")]
row_by_row = pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)


def test_every_class_is_in_the_catalog_or_a_family() -> None:
    assert {row.name for row in ROWS} | FAMILIES == set(CLASSES)


@row_by_row
def test_class_matches_its_catalog_row(row: Row) -> None:
    error = row.error()
    assert isinstance(error, CLASSES[row.family])
    assert (error.status, error.http_code) == (row.status, row.http_code)
    assert (error.effect, error.retryable) == (row.effect, row.retry)
    assert f"{error.exit_code} [{error.extended_exit_code}]" == row.exits
    assert error.hint


@row_by_row
def test_the_json_object_has_the_typed_members(row: Row) -> None:
    body = row.error().to_json()
    json.dumps(body)
    assert body.get("code") == row.http_code
    assert body["kind"] == row.error().code
    assert (body["retry"], body["effect"]) == (row.retry, row.effect)
    assert {name: body.get(name) for name in row.body} == row.body


@row_by_row
def test_message_is_built_from_the_details(row: Row) -> None:
    message = row.error().message
    assert message == row.error().to_json()["error"]
    assert "\n" not in message
    assert not re.search(r"[{}\[\]|]", message)
    assert not message.endswith(".")


@row_by_row
def test_every_class_can_be_created_without_details(row: Row) -> None:
    error = CLASSES[row.name]()
    assert error.message
    assert not re.search(r"[{}\[\]|]", error.message)
    assert CLASSES[row.name]("my own words").message.endswith("my own words")


@row_by_row
def test_a_pickle_keeps_everything(row: Row) -> None:
    error = row.error()
    error.request_id = "r-1"
    for twin in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert type(twin) is type(error)
        assert twin.to_json() == error.to_json()
        assert (str(twin), repr(twin), twin.args) == (str(error), repr(error), error.args)
        assert twin.__dict__ == error.__dict__


@row_by_row
def test_declared_details_are_attributes(row: Row) -> None:
    error = row.error()
    for name, value in error.details.items():
        if name not in {"merge_conflicts"}:
            assert getattr(error, name) == value


@row_by_row
def test_repr_shows_class_code_and_message(row: Row) -> None:
    error = row.error()
    assert repr(error) == f"{row.name}(code={error.code!r}, {error.message!r})"


@pytest.mark.parametrize(
    ("error", "natural"),
    [
        (BranchNotFound(branch="x"), KeyError),
        (PermissionDenied(action="read"), PermissionError),
        (InputError(reason="x"), ValueError),
        (ParameterError(parameter="x", expected="I32"), ValueError),
        (UsageError(reason="x"), TypeError),
    ],
)
def test_builtin_exception_classes_catch_our_errors(error: OmnigraphError, natural: type[Exception]) -> None:
    with pytest.raises(natural) as caught:
        raise error
    assert str(caught.value).startswith(error.message)


def test_error_text_ends_with_its_hint() -> None:
    assert str(KeyConflict(type_key="node:P", entity_id="a")).endswith(
        "\nhint: use mode `merge` to update existing entities"
    )
    assert str(InputError(reason="x", hint="write y")) == "x\nhint: write y"
    assert str(InputError(reason="x")) == "x"


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("VersionConflict", "ExpectedVersionMismatch"),
        ("ReadSetConflict", "ReadSetChanged"),
        ("MergeConflict", "MergeConflicts"),
        ("ConcurrentCommit", "RowLevelCasContention"),
        ("HistoryReclaimed", "HistoricalVersionReclaimed"),
        ("KeyConflict", "KeyConflict"),
        ("ChangeFeedGap", "ChangeFeedGap"),
    ],
)
def test_established_error_names_equal_their_codes(name: str, code: str) -> None:
    assert CLASSES[name].code == code


def test_codes_are_distinct() -> None:
    assert len({found.code for found in CLASSES.values()}) == len(CLASSES)


@pytest.mark.parametrize(
    ("error", "prefix"),
    [
        (ChangeCursorRejected, "change cursor rejected: "),
        (QueryExecutionError, "query: "),
        (ConcurrentCommit, "retryable storage commit conflict: "),
        (MergeConflict, "merge conflicts: "),
    ],
)
def test_stable_prefixes_stay(error: type[OmnigraphError], prefix: str) -> None:
    for made in (error(), error("why"), error(prefix + "why")):
        assert made.message.startswith(prefix)
        assert made.message.count(prefix) == 1


def test_instance_can_override_class_attributes() -> None:
    error = StorageError(kind="unknown", effect="none", retryable="same", hint="wait")
    assert (error.effect, error.retryable, error.hint) == ("none", "same", "wait")
    assert (StorageError.effect, StorageError.retryable) == ("unknown", "no")
    assert ServerError("proxy", status=502).status == 502


def test_undeclared_details_are_kept() -> None:
    error = KeyConflict(type_key="node:A", colour="red", code="x")
    assert error.details == {
        "entity_kind": "node", "type_name": "A", "colour": "red", "code": "x"
    }  # fmt: skip
    assert error.code == "KeyConflict"
    assert error.entity_id is None
    assert error.message == "node type 'A' already has an entity with this id"


def test_only_transient_storage_failures_are_transient() -> None:
    assert isinstance(StorageError(kind="transient"), Transient)
    assert not isinstance(StorageError(kind="permanent"), Transient)
    assert not isinstance(StorageError(), Transient)
    assert isinstance(TooManyRequests(retry_after=3), Transient)


def test_internal_error_hides_its_details() -> None:
    error = InternalError(reason="/srv/graph/x.lance is gone", request_id="r9")
    body = error.to_json(public=True)
    assert "srv" not in json.dumps(body)
    assert body["request_id"] == "r9"
    assert "srv" in json.dumps(error.to_json())
    conflict = KeyConflict(type_key="node:A", entity_id="a")
    assert conflict.to_json(public=True) == conflict.to_json()


def test_composite_uniqueness_names_its_columns_and_both_ids() -> None:
    error = UniqueViolation(type_name="Follows", property=("src", "dst"), value="a, b", first_id="x", second_id="y")
    wanted = "@unique violation on Follows.(src, dst): value 'a, b' is used by both 'x' and 'y'"
    assert error.message == wanted


def test_a_keyed_limit_hints_at_batches() -> None:
    keyed = ResourceLimitExceeded(resource="keyed entities for node:T", limit=8192, actual=8193)
    assert keyed.hint == "split into batches of at most 8192"
    other = ResourceLimitExceeded(resource="stream_export_slots", limit=1, actual=2)
    assert other.hint == ResourceLimitExceeded.hint


# Merge conflicts


def conflict(kind: str, name: str, entity: str | None) -> EntityConflict:
    return EntityConflict(kind, name, entity, "divergent_update", "both <b>changed</b>")


def test_merge_conflicts_are_sorted_once_each_and_previewed() -> None:
    found = [conflict("edge", "A", "1"), conflict("node", "B", "2"), conflict("node", "B", "1")]
    error = MergeConflict(conflicts=[*found, found[0], conflict("node", "A", None)])
    order = [(one.entity_kind, one.type_name, one.entity_id) for one in error.conflicts]
    assert order == [("node", "A", None), ("node", "B", "1"), ("node", "B", "2"), ("edge", "A", "1")]
    assert error.message.endswith("; and 1 more")
    assert error.message.count("divergent_update") == 3
    assert len(error.to_json()["merge_conflicts"]) == 4


def test_merge_conflicts_show_as_tables() -> None:
    error = MergeConflict(conflicts=[conflict("node", "A", "1"), conflict("node", "A", None)])
    html = error._repr_html_()
    assert "&lt;b&gt;changed" in html
    assert "<b>" not in html
    arrow = error.to_arrow()
    assert arrow.column_names[:5] == ["entity_kind", "type_name", "entity_id", "kind", "message"]
    assert arrow["entity_id"].to_pylist() == [None, "1"]


def test_version_conflict_has_the_type_key() -> None:
    error = VersionConflict(entity_kind="edge", type_name="Knows", expected=1, actual=2)
    assert error.type_key == "edge:Knows"
    assert isinstance(error, Conflict)


# Language errors

TEXT = SourceText("a.pg", "node lamp {}\r\nnode Löwe { ä: I32 }")


def finding(start: int, end: int, message: str, kind: DiagnosticKind = "parse", **more: Any) -> Diagnostic:
    return Diagnostic.at_span(TEXT, Span(start, end), message, kind=kind, **more)


def test_language_error_renders_every_finding() -> None:
    error = language_error([finding(5, 9, "no"), finding(19, 23, "neither", hint="A-Z")], TEXT)
    assert str(error).splitlines() == [
        "a.pg:1:6: error: no",
        "  1 | node lamp {}",
        "    |      ^^^^",
        "a.pg:2:6: error: neither",
        "  2 | node Löwe { ä: I32 }",
        "    |      ^^^^",
        "  hint: A-Z",
    ]
    assert error.message == "a.pg:1:6: no (and 1 more)"
    assert repr(error) == "ParseError(code='ParseError', 'a.pg:1:6: no (and 1 more)')"


def test_language_error_renders_at_most_twenty_findings() -> None:
    twenty = language_error([finding(0, 4, f"m{n}") for n in range(20)], TEXT)
    more = language_error([finding(0, 4, f"m{n}") for n in range(23)], TEXT)
    assert "more" not in str(twenty)
    assert str(more).splitlines()[-1] == "and 3 more"
    assert "m19" in str(more)
    assert "m20" not in str(more)
    assert len(more.diagnostics) == 23


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("parse", "ParseError"),
        ("catalog", "CatalogError"),
        ("identity", "IdentityError"),
        ("plan", "SchemaUnsupported"),
        ("type", "TypeCheckError"),
        ("input", "ParameterError"),
        ("lint", "LanguageError"),
    ],
)
def test_first_finding_determines_the_error_class(kind: DiagnosticKind, name: str) -> None:
    other: DiagnosticKind = "type" if kind == "parse" else "parse"
    warning = finding(0, 1, "w", other, severity="warning")
    error = language_error([warning, finding(0, 1, "e", kind), finding(0, 1, "f", other)], TEXT)
    assert type(error).__name__ == name
    assert error.message.startswith("a.pg:1:1: e")
    assert len(error.diagnostics) == 3


def test_diagnostics_in_json_have_positions() -> None:
    error = language_error([finding(5, 9, "bad operand", "type", code="T7")], TEXT)
    assert error.message == "a.pg:1:6: T7: bad operand"
    body = error.to_json()
    assert body["diagnostics"] == [
        {
            "message": "bad operand",
            "code": "T7",
            "kind": "type",
            "severity": "error",
            "start": 5,
            "end": 9,
            "line": 1,
            "column": 6,
        }
    ]
    assert body["code"] == "bad_request"


def test_a_language_error_survives_a_pickle() -> None:
    error = language_error([finding(5, 9, "no", "type")], TEXT)
    twin = pickle.loads(pickle.dumps(error))
    assert isinstance(twin, TypeCheckError)
    assert twin.diagnostics == error.diagnostics
    assert str(twin) == str(error)


def test_language_error_without_source_has_positions() -> None:
    error = ParseError(diagnostics=[finding(5, 9, "no", code="Q000")])
    assert str(error) == "1:6: error[Q000]: no"
    assert str(LanguageError()) == "the schema or query text is invalid"


def test_notebook_output_is_escaped() -> None:
    text = SourceText("q.gq", "<script>")
    error = language_error([Diagnostic.at_span(text, Span(0, 8), "no <b>")], text)
    html = error._repr_html_()
    assert "&lt;script&gt;" in html
    assert "<script>" not in html
    assert "<b>" not in html


# Secrets


@pytest.mark.parametrize(
    ("uri", "shown"),
    [
        ("s3://key:secret@bucket/x?sig=abc", "s3://bucket/x"),
        ("s3://key:sec/ret@bucket/x", "s3://bucket/x"),
        ("s3://key:sec?ret@bucket/x", "s3://[redacted]"),
        ("https://secret@host:8080/a#secret", "https://host:8080/a"),
        ("https://u:p@w:secret@host/a", "https://host/a"),
        ("s3://bucket/a@b/c", "s3://bucket/a@b/c"),
        ("http://[::1]:80/a?secret", "http://[::1]:80/a"),
        ("file:///data/g", "file:///data/g"),
        ("data/g?x", "data/g?x"),
    ],
)
def test_a_uri_is_shown_without_secrets(uri: str, shown: str) -> None:
    assert redact_uri(uri) == shown
    assert redact_text(f"cannot open '{uri}' now") == f"cannot open '{shown}' now"


@pytest.mark.parametrize("error", [ExternalBlobPolicyError, GraphNotInitialized, InitializationIndeterminate])
def test_no_error_prints_the_secrets_of_a_uri(error: type[OmnigraphError]) -> None:
    made = error(uri="s3://key:secret@bucket/x?sig=abc", source_uri="s3://k:secret@b")
    for text in (str(made), repr(made), json.dumps(made.to_json()), str(made.__dict__)):
        assert "secret" not in text
        assert "sig" not in text
    assert "s3://bucket/x" in str(made)


def test_conflict_without_an_entity_is_named_by_its_type() -> None:
    conflict = {"entity_kind": "node", "type_name": "Person.age", "kind": "schema_conflict", "message": "renamed"}
    assert "\n  Person.age: renamed" in str(MergeConflict(conflicts=[conflict]))
