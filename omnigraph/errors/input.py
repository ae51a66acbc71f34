"""Errors in caller input: invalid values, records, parameters or sizes, and plans that cannot run."""
# ruff: noqa: N818 - a class name states what happened and needs no `Error` suffix

from collections.abc import Mapping, Sequence
from typing import Any

from .language import LanguageError
from .root import ClientError, fill_template

_ADVICE_PREFIXES = ("expected ", "give ", "choose ")  # a reason that starts like this tells the user what to do
_MIN_PHRASE_SPACES = 3  # a reason with three or more spaces is a sentence, not a label for programs


class InputError(ClientError, ValueError):
    """The input is malformed."""

    sentence = "[line {line}: ]{reason}"
    hint = "correct the input"
    line: int | None = None
    reason: str | None = None

    @property
    def explained(self) -> str:
        """The message, followed by the reason in parentheses if the reason is a phrase and not just a label.

        >>> InputError("'x' names no commit", reason="expected HEAD~ and a number").explained
        "'x' names no commit (expected HEAD~ and a number)"
        >>> InputError("cannot read x.pg: it is a folder", reason="unreadable").explained
        'cannot read x.pg: it is a folder'
        """
        reason = self.reason or ""
        is_explanatory = reason.startswith(_ADVICE_PREFIXES) or reason.count(" ") >= _MIN_PHRASE_SPACES
        is_redundant = not is_explanatory or reason in self.message
        return self.message if is_redundant else f"{self.message} ({reason})"


class ParameterError(LanguageError, InputError):
    """A parameter is missing or unknown, or its value has the wrong type.

    >>> print(ParameterError(parameter="age", expected="I32", actual="string 'x'").message)
    parameter '$age': expected I32, got string 'x'
    """

    sentence = "parameter '${parameter}': expected {expected}[, got {actual}]"
    hint = "pass a value of the parameter's declared type"
    parameter: str | None = None
    expected: Any = None
    actual: Any = None


class PropertyValueError(InputError):
    """The value does not match the type of its property.

    >>> print(PropertyValueError(type_name="User", property="age", expected="I32", actual="null"))
    property 'User.age': expected I32, got null
    """

    sentence = (
        "[line {line}: ]property '[{type_name}.]{property}'[ of '{entity_id}']: expected {expected}[, got {actual}]"
    )
    hint = "use a value of the property's declared type"
    type_name: str | None = None
    property: str | None = None
    entity_id: str | None = None
    expected: Any = None
    actual: Any = None


class UniqueViolation(ClientError):
    """Two entities share a value that must be unique.

    `property` is the name of the column. For a composite constraint, it lists all column names.

    >>> print(UniqueViolation(type_name="Follows", property=("src", "dst"), value="a, b").message)
    @unique violation on Follows.(src, dst): value 'a, b' is not unique
    """

    sentence = (
        "[line {line}: ]@unique violation on {type_name}.{property}: value '{value}'"
        "[ is used by both '{first_id}' and '{second_id}'| is not unique]"
        "[ (input positions {first_input_position} and {second_input_position})]"
    )
    # The sentence to use if two records in the same input describe the same entity.
    repeated_input_sentence = (
        "[line {line}: ]@unique violation on {type_name}.{property}: value '{value}'"
        " appears on line {first_input_position} and again on line {second_input_position}"
    )
    hint = "remove one of the entities, or give them different values"
    type_name: str | None = None
    property: Any = None
    value: Any = None
    line: int | None = None
    first_id: str | None = None
    second_id: str | None = None
    first_input_position: int | None = None
    second_input_position: int | None = None

    def __init__(self, message: str | None = None, *, property: Any = None, **facts: Any) -> None:
        column_text = property if isinstance(property, str | None) else f"({', '.join(property)})"
        first_id, second_id = facts.get("first_id"), facts.get("second_id")
        if message is None and first_id is not None and first_id == second_id:
            present_facts = {fact_name: fact_value for fact_name, fact_value in facts.items() if fact_value is not None}
            message = fill_template(self.repeated_input_sentence, present_facts | {"property": column_text})
        super().__init__(message, property=column_text, **facts)


class ConstraintViolation(ClientError):
    """The entity violates a schema rule.

    `rule` is the violated rule: `@range`, `@check`, `@card`, `enum`, `required` or `endpoint`.

    >>> print(ConstraintViolation(rule="@range", type_name="User", property="age", reason="151"))
    @range violation on User.age: 151
    >>> print(ConstraintViolation(rule="endpoint", type_name="Knows", edge="'a' -> 'b'").message)
    endpoint violation on Knows 'a' -> 'b'
    """

    sentence = "[line {line}: ]{rule} violation on {type_name}[.{property}][ for '{entity_id}'][: {reason}]"
    # Edges are identified by their endpoints, because most edge ids have only just been generated.
    edge_sentence = "[line {line}: ]{rule} violation on {type_name} {edge}[: {reason}]"
    hint = "correct the entity, or change the rule in the schema"
    type_name: str | None = None
    entity_id: str | None = None
    property: str | None = None
    rule: str | None = None
    line: int | None = None
    reason: str | None = None
    edge: str | None = None

    def __init__(self, message: str | None = None, **facts: Any) -> None:
        if message is None and facts.get("edge") is not None:
            present_facts = {fact_name: fact_value for fact_name, fact_value in facts.items() if fact_value is not None}
            message = fill_template(self.edge_sentence, present_facts)
        super().__init__(message, **facts)


class SchemaViolation(ClientError):
    """Existing entities violate a rule of the new schema, so the schema was not applied.

    `violations` lists the first violations as mappings with members such as `type`, `id` and `rule`. `more` is true if
    there are further violations. If there are several violations, `str()` lists each on its own line.

    >>> ann = {"type": "node:User", "id": "ann", "rule": "@range", "reason": "151 is too much"}
    >>> print(SchemaViolation(violations=[ann, {**ann, "id": "bob"}]))
    the data does not fit the new schema: node:User 'ann': @range: 151 is too much, and 1 more
      node:User 'ann': @range: 151 is too much
      node:User 'bob': @range: 151 is too much
    hint: correct or delete these entities, or relax the rule, then apply the schema again
    """

    hint = "correct or delete these entities, or relax the rule, then apply the schema again"
    violations: Sequence[Mapping[str, Any]] = ()
    more: bool = False

    def __init__(
        self,
        message: str | None = None,
        *,
        violations: Sequence[Mapping[str, Any]] = (),
        more: bool = False,
        **facts: Any,
    ) -> None:
        remaining_note = f"{'at least ' * more}{len(violations) - 1 + more} more"
        summaries = [_describe_violation(violation) for violation in violations[:1]] + [remaining_note] * (
            len(violations) > 1
        )
        message_text = message or ": ".join(
            ["the data does not fit the new schema", *([", and ".join(summaries)] if summaries else [])]
        )
        super().__init__(message_text, violations=list(violations) or None, more=more, **facts)

    @property
    def lines(self) -> list[str]:
        """Return one line per violation."""
        return [_describe_violation(violation) for violation in self.violations] + ["and more"] * self.more

    def __str__(self) -> str:
        indented_lines = [f"  {line}" for line in self.lines] if len(self.lines) > 1 else []
        return "\n".join([self.message, *indented_lines, f"hint: {self.hint}"])


def _describe_violation(violation: Mapping[str, Any]) -> str:
    property_suffix = f".{violation['property']}" if violation.get("property") else ""
    reason_suffix = f": {violation['reason']}" if violation.get("reason") else ""
    subject = f"{violation['type']}{property_suffix} '{violation['id']}'"
    return f"{subject}: {violation['rule']}{reason_suffix}"


class QueryExecutionError(ClientError):
    """The engine cannot run the query plan."""

    prefix = "query: "
    sentence = "query: {reason}"
    hint = "run `optimize` if the query needs an index; otherwise change the query or its parameters"
    reason: str | None = None


class ExpressionError(LanguageError, QueryExecutionError):
    """A query expression cannot be evaluated for a row, for example because an integer does not fit in 64 bits.

    The diagnostic points at the expression in the query text.

    >>> from omnigraph.errors.diagnostics import Diagnostic, SourceText, Span
    >>> source = SourceText("<query>", "$p.n + 1")
    >>> print(ExpressionError(diagnostics=[Diagnostic.at_span(source, Span(0, 8), "does not fit")], source=source))
    <query>:1:1: error: does not fit
      1 | $p.n + 1
        | ^^^^^^^^
    """

    prefix = "query: "
    hint = "change the expression, or the parameter or row values that cause the error"


class AmbiguousAssignment(ClientError):
    """A match assigns two different values to the same property of an entity.

    >>> error = AmbiguousAssignment(
    ...     type_name="Person", entity_id="ann", property="age", first_value=1, second_value=2
    ... )
    >>> print(error.message)
    update of Person 'ann': the match assigns both 1 and 2 to 'age'
    """

    sentence = (
        "update of {type_name} '{entity_id}': the match assigns both {first_value} and {second_value} to '{property}'"
    )
    hint = "add conditions to the match so that it returns one value for each entity"
    type_name: str | None = None
    entity_id: str | None = None
    property: str | None = None
    first_value: Any = None
    second_value: Any = None


class StatementConflict(ClientError):
    """Two statements in a mutation affect the same entity, and one of them deletes it.

    >>> error = StatementConflict(
    ...     entity_kind="node",
    ...     type_name="Person",
    ...     entity_id="ann",
    ...     first_statement="insert Person (statement 1)",
    ...     second_statement="delete Person (statement 2)",
    ... )
    >>> print(error.message)
    node Person 'ann' is affected by two statements: insert Person (statement 1) and delete Person (statement 2)
    """

    sentence = (
        "{entity_kind} {type_name} '{entity_id}' is affected by two statements:"
        " {first_statement} and {second_statement}"
    )
    hint = "run the statements as separate queries in a transaction; a query must not write an entity that it deletes"
    entity_kind: str | None = None
    type_name: str | None = None
    entity_id: str | None = None
    first_statement: str | None = None
    second_statement: str | None = None


class ExternalBlobPolicyError(ClientError):
    """The graph does not allow external blobs from this location."""

    sentence = "external blob '{uri}' is not allowed[: {reason}]"
    hint = "open the graph with external_blobs=[...], or pass the bytes, a pathlib.Path or base64 text"
    uri: str | None = None
    reason: str | None = None


class ExternalBlobSourceError(ClientError):
    """The source of an external blob cannot be read."""

    status = 424
    http_code = None
    retryable = "same"
    sentence = "external blob '{uri}' cannot be read[: {reason}]"
    wire_member = "external_blob_source"
    wire_facts = ("uri", "reason")
    hint = "check that the source exists and is reachable, then try again"
    uri: str | None = None
    reason: str | None = None


class ChangeCursorRejected(ClientError):
    """The cursor or page token is damaged, or belongs to a different graph, branch, filter or commit."""

    prefix = "change cursor rejected: "
    sentence = "change cursor rejected: {reason}"
    hint = "use the cursor with the graph, branch and filter it was created for, or take a new baseline"
    reason: str | None = None


class EmbeddingModelMismatch(ClientError):
    """The query and the stored vectors use different embedding models."""

    sentence = (
        "property '{property}' contains vectors from model '{recorded_model}'"
        "[, but the query would use '{resolved_model}']"
    )
    hint = "use the model that computed the stored vectors, or recompute these vectors with the other model"
    property: str | None = None
    recorded_model: str | None = None
    resolved_model: str | None = None


class EmbeddingError(ClientError):
    """The embedding provider failed."""

    status = 424
    http_code = None
    retryable = "same"
    sentence = "embedding with '{provider}'[ model '{model}'] failed[: {reason}]"
    wire_member = "embedding_source"
    wire_facts = ("provider", "model", "provider_status", "attempts")
    hint = "check that the embedding provider is reachable and its API key is set, then try again"
    extended_exit_code = 7
    provider: str | None = None
    model: str | None = None
    provider_status: int | None = None
    attempts: int | None = None
    reason: str | None = None

    def typed_members(self) -> dict[str, Any]:
        """Return the facts about the provider. On the wire, the provider's HTTP status is called `status`."""
        facts = super().typed_members()["embedding_source"]
        wire_names = {"provider_status": "status"}
        return {
            "embedding_source": {
                wire_names.get(fact_name, fact_name): fact_value for fact_name, fact_value in facts.items()
            }
        }


class ResourceLimitExceeded(ClientError):
    """A resource limit is exceeded.

    >>> error = ResourceLimitExceeded(resource="keyed entities for node:T", limit=2, actual=3)
    >>> error.hint
    'split into batches of at most 2'
    """

    status = 413
    sentence = "resource limit exceeded for {resource}[: {actual} is more than {limit}]"
    wire_member = "resource_limit"
    wire_facts = ("resource", "limit", "actual")
    hint = "reduce the size of the request"
    resource: str | None = None
    limit: int | None = None
    actual: int | None = None

    def __init__(self, message: str | None = None, **facts: Any) -> None:
        is_keyed = str(facts.get("resource")).startswith("keyed")
        if is_keyed and facts.get("limit") is not None:
            facts.setdefault("hint", f"split into batches of at most {facts['limit']}")
        super().__init__(message, **facts)


class RangeNotSatisfiable(ClientError):
    """The byte range is outside the blob."""

    status = 416
    sentence = "byte range {start} to {end} is outside the value, which has {length} bytes"
    wire_member = "blob_range"
    wire_facts = ("start", "end", "length")
    hint = "request a range within the blob"
    start: int | None = None
    end: int | None = None
    length: int | None = None


class UnsupportedMediaType(ClientError):
    """The content type of the request is not supported."""

    status = 415
    sentence = "content type '{actual}' is not supported[, expected {expected}]"
    hint = "send a content type that the server accepts"
    expected: Any = None
    actual: str | None = None
