"""Every error of Omnigraph: one root, families, facts, hint, effect, retry advice.

`code` is the stable name of an outcome for programs: the class name, or the established name of
the outcome where it has one (`ExpectedVersionMismatch`, `ReadSetChanged`). `http_code` is the word
of the closed HTTP set; outcomes outside it have none. Decide by class, `code`, `status` or typed
member, never by message.
"""

from omnigraph.errors.choose import language_error
from omnigraph.errors.input import InputError, ParameterError
from omnigraph.errors.language import (
    CatalogError,
    IdentityError,
    LanguageError,
    ParseError,
    SchemaUnsupported,
    TypeCheckError,
)
from omnigraph.errors.redact import redact_text, redact_uri
from omnigraph.errors.root import (
    ClientError,
    ConfigError,
    Conflict,
    Effect,
    OmnigraphError,
    Retry,
    ServerError,
    Transient,
    UsageError,
)

__all__ = [
    "CatalogError",
    "ClientError",
    "ConfigError",
    "Conflict",
    "Effect",
    "IdentityError",
    "InputError",
    "LanguageError",
    "OmnigraphError",
    "ParameterError",
    "ParseError",
    "Retry",
    "SchemaUnsupported",
    "ServerError",
    "Transient",
    "TypeCheckError",
    "UsageError",
    "language_error",
    "redact_text",
    "redact_uri",
]
