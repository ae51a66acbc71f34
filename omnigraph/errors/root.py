"""The base class of all errors, and the families of errors that users catch.

Each error carries its details as facts. The error class defines the status, effect, retry advice, hint and message
template, and the facts are inserted into the template. The constructor redacts every fact that is a URI, so that errors
never reveal the secrets in it.
"""
# ruff: noqa: N818 - a class name states what happened and needs no `Error` suffix

import re
from functools import cache
from typing import Any, ClassVar, Literal

from omnigraph.records.cached_property import cached_property

from .redact import redact_uri
from .single_line import single_line

Effect = Literal["none", "unknown", "done"]
"""What happened to the data: nothing was stored, the outcome depends on recovery, or the write was published."""

Retry = Literal["no", "same", "fresh", "after_recovery"]
"""Whether a retry can help: no, yes with the same request, yes after reading the data again, or yes after recovery."""

# These hints add nothing to the error message, so they are not shown with it.
_REDUNDANT_HINTS = (
    None,
    "correct the input",
    "correct the request; the same request will fail again",
    "correct the entity, or change the rule in the schema",
    "use a value of the property's declared type",
    "pass a value of the parameter's declared type",
    "see the command's --help or the method's documentation",
)
_OPTIONAL_PART = re.compile(r"\[([^\[\]]*)\]")
_PLACEHOLDER = re.compile(r"\{(\w+)\}")


class OmnigraphError(Exception):
    """An Omnigraph operation failed.

    `code` is a stable name that programs can rely on, `http_code` is one of a fixed set of HTTP error codes (or None),
    and `status` is the HTTP status. `details` contains the facts. Facts that a class declares are also available as
    attributes.

    >>> error = OmnigraphError("the lamp is off", room="attic")
    >>> error.details
    {'room': 'attic'}
    >>> error
    OmnigraphError(code='OmnigraphError', 'the lamp is off')
    """

    code: ClassVar[str] = "OmnigraphError"
    http_code: ClassVar[str | None] = None
    sentence: ClassVar[str] = ""
    prefix: ClassVar[str] = ""
    wire_member: ClassVar[str | None] = None
    wire_facts: ClassVar[tuple[str, ...]] = ()
    exit_code: ClassVar[int] = 1
    extended_exit_code: ClassVar[int] = 1

    status: int | None = None
    effect: Effect = "none"
    retryable: Retry = "no"
    hint: str | None = None
    request_id: str | None = None
    details: dict[str, Any]
    has_given_message: bool

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "code" not in cls.__dict__:
            cls.code = cls.__name__

    def __init__(
        self,
        message: str | None = None,
        *,
        hint: str | None = None,
        effect: Effect | None = None,
        retryable: Retry | None = None,
        status: int | None = None,
        request_id: str | None = None,
        **facts: Any,
    ) -> None:
        safe_facts = {
            fact_name: _redact_fact(fact_name, fact_value)
            for fact_name, fact_value in facts.items()
            if fact_value is not None
        }
        error_class: Any = type(self)
        attributes = {"hint": hint, "effect": effect, "retryable": retryable, "status": status}
        attributes |= {"request_id": request_id}
        attributes |= {
            fact_name: fact_value
            for fact_name, fact_value in safe_facts.items()
            if _declares_fact(error_class, fact_name)
        }
        self.__dict__.update(
            {fact_name: fact_value for fact_name, fact_value in attributes.items() if fact_value is not None}
        )
        self.details = safe_facts
        super().__init__()
        self.has_given_message = bool(message)
        if message:
            self.message = self._with_prefix(message)

    @cached_property
    def message(self) -> str:
        """The message that the caller passed, or the class's `sentence` with the facts filled in.

        The sentence is filled in on first access, because a load may collect many errors and show only a few.
        """
        return self._with_prefix(fill_template(self.sentence, self.details) or default_message(type(self)))

    @property
    def args(self) -> tuple[Any, ...]:  # type: ignore[override]
        """The message as the only argument, as in other exceptions."""
        return (self.message,)

    def _with_prefix(self, message_text: str) -> str:
        return message_text if message_text.startswith(self.prefix) else self.prefix + message_text

    def __str__(self) -> str:
        advice = self.advice
        return self.message if advice is None else f"{self.message}\nhint: {advice}"

    @property
    def advice(self) -> str | None:
        """The hint, or None if there is no hint or if it adds nothing to the error message."""
        return self.hint if self.hint not in _REDUNDANT_HINTS else None

    def __repr__(self) -> str:
        return f"{type(self).__name__}(code={self.code!r}, {_clip_first_line(self.message)!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore_error, (type(self), self.message, self.__dict__.copy())

    def to_json(self, *, public: bool = False) -> dict[str, Any]:
        """Return the error as the HTTP API sends it, omitting absent facts.

        If `public` is true, an internal failure is reported without its facts, which belong only in the log.

        >>> OmnigraphError("no", room="attic").to_json()["details"]
        {'room': 'attic'}
        """
        hides_facts = public and self.http_code == "internal"
        extra_details = {
            fact_name: fact_value for fact_name, fact_value in self.details.items() if fact_name not in self.wire_facts
        }
        body: dict[str, Any] = {
            "error": default_message(type(self)) if hides_facts else self.message,
            "code": self.http_code,
            "kind": self.code,
            **({} if hides_facts else self.typed_members()),
            "details": None if hides_facts else extra_details or None,
            "hint": self.hint,
            "retry": self.retryable,
            "effect": self.effect,
            "request_id": self.request_id,
        }
        return {member: member_value for member, member_value in body.items() if member_value is not None}

    def typed_members(self) -> dict[str, Any]:
        """Return members that let programs recognize this error without parsing the message."""
        if self.wire_member is None:
            return {}
        return {
            self.wire_member: {
                fact_name: self.details[fact_name] for fact_name in self.wire_facts if fact_name in self.details
            }
        }


class ClientError(OmnigraphError):
    """The request is invalid."""

    status: int | None = 400
    http_code: ClassVar[str | None] = "bad_request"
    hint = "correct the request; the same request will fail again"


class ServerError(OmnigraphError):
    """The request was valid, but processing it failed."""

    status: int | None = 500
    http_code: ClassVar[str | None] = "internal"
    effect: Effect = "unknown"
    hint = "look up the request id in the log"


class ConfigError(OmnigraphError):
    """The configuration is invalid."""

    sentence = "invalid configuration: {reason}[ ({path})]"
    hint = "correct the configuration file or the environment"
    reason: str | None = None
    path: str | None = None


class UsageError(ClientError, TypeError):
    """The call or command is used incorrectly."""

    status = None
    http_code = None
    sentence = "{reason}"
    hint = "see the command's --help or the method's documentation"
    exit_code = 2
    extended_exit_code = 2
    reason: str | None = None


class Conflict(ClientError):
    """The request conflicts with the current state of the graph."""

    status = 409
    http_code = "conflict"
    hint = "read the current state, then decide whether to retry"
    extended_exit_code = 3


class Transient(OmnigraphError):
    """Marker class: the same request may succeed later."""

    retryable: Retry = "same"
    extended_exit_code = 7


def fill_template(template: str, facts: dict[str, Any]) -> str | None:
    """Fill in a template with facts, or return None if a required fact is missing.

    If a fact in a bracketed part is missing, the part is replaced by the text after its `|`, or omitted if it has no
    `|`.

    >>> fill_template("no branch '{branch}'[ in {graph}| here]", {"branch": "dev"})
    "no branch 'dev' here"
    """
    template_parts = list(_split_template(template))
    # `re.split` places the bracketed parts at odd positions.
    template_parts[1::2] = [_resolve_optional_part(optional_part, facts) for optional_part in template_parts[1::2]]
    filled_text = "".join(template_parts)
    if not template or any(fact_name not in facts for fact_name in _PLACEHOLDER.findall(filled_text)):
        return None
    return _PLACEHOLDER.sub(lambda placeholder: _format_placeholder(placeholder, facts), filled_text)


def _format_placeholder(placeholder: re.Match[str], facts: dict[str, Any]) -> str:
    """Return a fact as text. If the template puts the fact in quotes, the text is kept on one line."""
    fact_text = _format_fact(facts[placeholder.group(1)])
    return single_line(fact_text) if placeholder.string[: placeholder.start()].endswith("'") else fact_text


@cache
def _split_template(template: str) -> tuple[str, ...]:
    return tuple(_OPTIONAL_PART.split(template))


def _resolve_optional_part(optional_part: str, facts: dict[str, Any]) -> str:
    preferred_text, _, fallback_text = optional_part.partition("|")
    return (
        preferred_text
        if all(fact_name in facts for fact_name in _PLACEHOLDER.findall(preferred_text))
        else fallback_text
    )


def default_message(error_class: type[OmnigraphError]) -> str:
    """Return the message for an error that was raised without a message or facts."""
    first_line = (error_class.__doc__ or error_class.__name__).strip().splitlines()[0].rstrip(".")
    return first_line[:1].lower() + first_line[1:]


def _format_fact(fact_value: Any) -> str:
    if isinstance(fact_value, str):
        return fact_value
    if isinstance(fact_value, (list, tuple)):
        return ", ".join(_format_fact(item) for item in fact_value)
    return str(fact_value)


def _redact_fact(fact_name: str, fact_value: Any) -> Any:
    is_uri = fact_name == "uri" or fact_name.endswith("_uri")
    return redact_uri(str(fact_value)) if is_uri else fact_value


@cache
def _declares_fact(error_class: type[OmnigraphError], fact_name: str) -> bool:
    # Declared facts have a class-level default, so callers can read them even if they are not set.
    return hasattr(error_class, fact_name) and not hasattr(OmnigraphError, fact_name)


def _clip_first_line(message: str, max_width: int = 120) -> str:
    line = message.partition("\n")[0]
    return line if len(line) <= max_width else line[: max_width - 1] + "…"


def _restore_error(error_class: type[OmnigraphError], message: str, attributes: dict[str, Any]) -> OmnigraphError:
    error = error_class.__new__(error_class)
    Exception.__init__(error, message)
    error.__dict__.update(attributes)
    return error
