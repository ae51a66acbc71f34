"""The base class of all errors and the families that users catch.

An error is a set of facts: its class defines status, effect, retry advice and hint, and its
constructor fills the facts into a message. Never holds a secret: every `uri` fact is redacted on
entry.
"""
# ruff: noqa: N818 - a class name states what happened, as in the documentation of the service

import re
from typing import Any, ClassVar, Literal

from omnigraph.errors.redact import redact_uri

Effect = Literal["none", "unknown", "done"]
"""What happened to the data: nothing durable, recovery must decide, or the write was published."""

Retry = Literal["no", "same", "fresh", "after_recovery"]
"""Whether a retry helps: never, the same request later, after reading again, after recovery."""

# Hints that only repeat the error message.
_OBVIOUS = (
    None,
    "correct the input",
    "correct the request; the same request will fail again",
    "correct the entity, or change the rule in the schema",
    "give the property a value of its declared type",
    "give the parameter a value of its declared type",
    "see the command's --help or the method's documentation",
)
_OPTIONAL = re.compile(r"\[([^\[\]]*)\]")
_FACT = re.compile(r"\{(\w+)\}")


class OmnigraphError(Exception):
    """An Omnigraph operation failed.

    `code` is the stable name of the outcome for programs, `http_code` the word of the closed HTTP
    set (or None), `status` the HTTP status. `details` holds the facts; facts that a class declares
    are attributes too.
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
    message: str

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
        known = {name: _safe(name, value) for name, value in facts.items() if value is not None}
        given = {"hint": hint, "effect": effect, "retryable": retryable, "status": status}
        given |= {"request_id": request_id}
        given |= {name: value for name, value in known.items() if _declares(type(self), name)}
        self.__dict__.update({name: value for name, value in given.items() if value is not None})
        self.details = known
        text = message or fill(self.sentence, known) or summary(type(self))
        self.message = text if text.startswith(self.prefix) else self.prefix + text
        super().__init__(self.message)

    def __str__(self) -> str:
        told = self.advice
        return self.message if told is None else f"{self.message}\nhint: {told}"

    @property
    def advice(self) -> str | None:
        """Return the hint, or None if it only repeats the error message."""
        return self.hint if self.hint not in _OBVIOUS else None

    def __repr__(self) -> str:
        return f"{type(self).__name__}(code={self.code!r}, {_short(self.message)!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return _revive, (type(self), self.message, self.__dict__.copy())

    def to_json(self, *, public: bool = False) -> dict[str, Any]:
        """Return the error object of the HTTP interface, without absent facts.

        A public response to an internal failure states only the kind of failure: its facts belong
        in the log.
        >>> OmnigraphError("no", room="attic").to_json()["details"]
        {'room': 'attic'}
        """
        hidden = public and self.http_code == "internal"
        extra = {n: v for n, v in self.details.items() if n not in self.wire_facts}
        body: dict[str, Any] = {
            "error": summary(type(self)) if hidden else self.message,
            "code": self.http_code,
            "kind": self.code,
            **({} if hidden else self.typed_members()),
            "details": None if hidden else extra or None,
            "hint": self.hint,
            "retry": self.retryable,
            "effect": self.effect,
            "request_id": self.request_id,
        }
        return {name: value for name, value in body.items() if value is not None}

    def typed_members(self) -> dict[str, Any]:
        """Return the members by which programs recognise this outcome without the message."""
        if self.wire_member is None:
            return {}
        return {
            self.wire_member: {n: self.details[n] for n in self.wire_facts if n in self.details}
        }


class ClientError(OmnigraphError):
    """The request cannot be served as sent."""

    status: int | None = 400
    http_code: ClassVar[str | None] = "bad_request"
    hint = "correct the request; the same request will fail again"


class ServerError(OmnigraphError):
    """The request was valid, but serving it failed."""

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
    hint = "read the current state, then decide"
    extended_exit_code = 3


class Transient(OmnigraphError):
    """Marker class: the same request may succeed later."""

    retryable: Retry = "same"
    extended_exit_code = 7


def fill(sentence: str, facts: dict[str, Any]) -> str | None:
    """Return the template filled with facts, or None if a required fact is missing.

    A bracketed part with missing facts is replaced by the text after its `|`, or dropped.

    >>> fill("no branch '{branch}'[ in {graph}| here]", {"branch": "dev"})
    "no branch 'dev' here"
    """
    parts = _OPTIONAL.split(sentence)
    # `split` puts the bracketed parts at odd positions.
    parts[1::2] = [_alternative(part, facts) for part in parts[1::2]]
    text = "".join(parts)
    if not sentence or any(name not in facts for name in _FACT.findall(text)):
        return None
    return _FACT.sub(lambda found: _spoken(facts[found.group(1)]), text)


def _alternative(part: str, facts: dict[str, Any]) -> str:
    wanted, _, otherwise = part.partition("|")
    return wanted if all(name in facts for name in _FACT.findall(wanted)) else otherwise


def summary(cls: type[OmnigraphError]) -> str:
    """Return the message of an error of this class that was raised without facts."""
    text = (cls.__doc__ or cls.__name__).strip().splitlines()[0].rstrip(".")
    return text[:1].lower() + text[1:]


def _spoken(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, (list, tuple)):
        return ", ".join(_spoken(item) for item in value)
    return str(value)


def _safe(name: str, value: Any) -> Any:
    is_uri = name == "uri" or name.endswith("_uri")
    return redact_uri(str(value)) if is_uri else value


def _declares(cls: type[OmnigraphError], name: str) -> bool:
    # Declared facts have a class-level default, so callers can read them even when they are unset.
    return hasattr(cls, name) and not hasattr(OmnigraphError, name)


def _short(text: str, width: int = 120) -> str:
    line = text.partition("\n")[0]
    return line if len(line) <= width else line[: width - 1] + "…"


def _revive(cls: type[OmnigraphError], message: str, state: dict[str, Any]) -> OmnigraphError:
    error = cls.__new__(cls)
    Exception.__init__(error, message)
    error.__dict__.update(state)
    return error
