"""Translate predicates written by Python callers, such as `age > 30 and name starts_with 'A'`.

This module qualifies bare property names with a query variable and declares parameter types. Values are passed as
parameters and never inserted into the text. The query compiler checks everything else.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from omnigraph.api.builders.prepared_queries import infer_type_name
from omnigraph.errors import InputError, UsageError
from omnigraph.lang.schema.names import did_you_mean
from omnigraph.records.frozen import record
from omnigraph.values import PropertyType

_TOKEN_PATTERN = re.compile(
    r"""(?P<space>\s+) | (?P<text>"(?:[^"\\]|\\.)*" | '(?:[^'\\]|\\.)*')
      | (?P<variable>\$[a-z_][A-Za-z0-9_]*) | (?P<word>[A-Za-z_][A-Za-z0-9_]*)
      | (?P<number>-?[0-9][0-9.eE+-]*) | (?P<sign><=|>=|!=|==|[<>=]) | (?P<other>.)""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPE_PATTERN = re.compile(r"""\\.|\"""", re.DOTALL)
_INFIX_OPERATORS = frozenset({"contains", "starts_with"})
_KEYWORDS = _INFIX_OPERATORS | {"and", "or", "not", "in", "is", "null", "true", "false"}
_COMPARISONS = frozenset({"=", "==", "!=", "<", "<=", ">", ">=", "in", *_INFIX_OPERATORS})
_ENDPOINT_ALIASES = {"src": "from", "dst": "to"}
_TEXT_TESTS = "use `contains`, `starts_with`, or `matches(..)` for a regular expression"
_FOREIGN_WORD_HINTS = {
    **{word: f"`{word}` is not an operator; {_TEXT_TESTS}" for word in ("like", "ilike", "matches", "regexp", "rlike")},
    **{word: f"keywords are lowercase: write `{word}`" for word in sorted(_KEYWORDS)},
}
_RESERVED_NAME = re.compile(r"[nep][0-9]+")

PredicateToken = tuple[str, str]


@record
class TranslatedPredicate:
    """A predicate in the query language, with the declared types of its parameters."""

    text: str
    types: Mapping[str, str]


def translate_predicate(
    predicate_text: str,
    properties: Mapping[str, PropertyType],
    arguments: Mapping[str, Any],
    *,
    prefix: str = "",
    owner: str = "this type",
) -> TranslatedPredicate:
    """Return the predicate with `prefix` before each property name.

    >>> from omnigraph.values import ScalarType
    >>> age = PropertyType(ScalarType.I32)
    >>> predicate = translate_predicate("age > $min", {"age": age}, {"min": 3}, prefix="$n0.")
    >>> predicate.text, predicate.types
    ('$n0.age > $min', {'min': 'I32'})
    """
    if not isinstance(predicate_text, str):
        raise UsageError(
            reason=f"a predicate must be a string, not {type(predicate_text).__name__}",
            hint='pass a string such as "age > 30", or "id != \'\'" to match every entity',
        )
    raw_tokens = [
        (match.lastgroup or "other", property_in_queries(match.group(), properties))
        for match in _TOKEN_PATTERN.finditer(predicate_text)
    ]
    infix_tokens = _rewrite_prefix_calls([raw_token for raw_token in raw_tokens if raw_token[0] != "space"])
    normalized_tokens = _rewrite_in_lists(_mark_properties(infix_tokens, properties))
    parameter_types = _parameter_types(normalized_tokens, properties, arguments)
    output_words = [
        _translate_token(normalized_tokens, token_index, properties, prefix, owner)
        for token_index in range(len(normalized_tokens))
    ]
    return TranslatedPredicate(_join_words(output_words), parameter_types)


def property_in_queries(property_name: str, properties: Iterable[str]) -> str:
    """Return the name that queries use for a property. `src` and `dst` are called `from` and `to`.

    >>> property_in_queries("src", ["id", "from", "to"]), property_in_queries("src", ["src"])
    ('from', 'src')
    """
    query_name = _ENDPOINT_ALIASES.get(property_name, property_name)
    return query_name if query_name in properties else property_name


def _translate_token(
    tokens: list[PredicateToken], token_index: int, properties: Iterable[str], prefix: str, owner: str
) -> str:
    kind, text = tokens[token_index]
    is_call = token_index + 1 < len(tokens) and tokens[token_index + 1][1] == "("
    if kind == "text" and text[0] == "'":
        return f'"{_ESCAPE_PATTERN.sub(_requote_escape, text[1:-1])}"'
    if kind == "sign":
        return "=" if text == "==" else text
    if kind == "property":
        return prefix + text
    if kind != "word" or text in _KEYWORDS or is_call:
        return text
    if text in properties:
        return prefix + text
    fallback_hint = _FOREIGN_WORD_HINTS.get(text.lower(), "put a string in quotes, or pass the value as a parameter")
    raise InputError(
        f"{owner} has no property '{text}'",
        reason="unknown property",
        hint=did_you_mean(text, properties, fallback_hint),
    )


def _mark_properties(tokens: list[PredicateToken], properties: Iterable[str]) -> list[PredicateToken]:
    """Mark properties whose names are also keywords, such as `in` in `in = 'z'`.

    Such a word is a property if a condition can begin with it and a comparison follows. Anywhere else, it is the
    keyword.
    """
    marked_tokens = list(tokens)
    for token_index, (kind, text) in enumerate(tokens[:-1]):
        is_candidate = kind == "word" and text in _KEYWORDS and text in properties
        if is_candidate and _starts_condition(marked_tokens, token_index) and _is_comparison(tokens, token_index + 1):
            marked_tokens[token_index] = ("property", text)
    return marked_tokens


def _is_comparison(tokens: list[PredicateToken], token_index: int) -> bool:
    """Return whether a token is an operator; `in` is an operator only if a list or a parameter follows."""
    text = tokens[token_index][1]
    if text != "in":
        return text in _COMPARISONS or text == "is"
    next_text = tokens[token_index + 1][1] if token_index + 1 < len(tokens) else ""
    return next_text.startswith(("(", "[", "$"))


def _requote_escape(match: "re.Match[str]") -> str:
    """Convert an escape sequence in a single-quoted string to its double-quoted form."""
    return {"\\'": "'", '"': '\\"'}.get(match.group(), match.group())


def _join_words(output_words: list[str]) -> str:
    """Join the words with single spaces, except directly inside brackets and before commas."""
    joined_text = ""
    for output_word in output_words:
        opens_call = output_word == "(" and joined_text[-1:].isalnum() and _last_word(joined_text) not in _KEYWORDS
        needs_no_space = not joined_text or joined_text[-1] in "([" or output_word in ")]," or opens_call
        joined_text += output_word if needs_no_space else f" {output_word}"
    return joined_text


def _last_word(joined_text: str) -> str:
    return re.split(r"[ (\[]", joined_text)[-1]


def _rewrite_prefix_calls(tokens: list[PredicateToken]) -> list[PredicateToken]:
    """Rewrite `starts_with(name, 'A')` as `name starts_with 'A'`, and leave everything else unchanged."""
    for token_index, (kind, text) in enumerate(tokens[:-1]):
        if (
            kind == "word"
            and text in _INFIX_OPERATORS
            and tokens[token_index + 1][1] == "("
            and _starts_condition(tokens, token_index)
        ):
            comma_index, closing_index = _find_argument_bounds(tokens, token_index + 1)
            if comma_index and closing_index:
                infix_tokens = [
                    *tokens[token_index + 2 : comma_index],
                    tokens[token_index],
                    *tokens[comma_index + 1 : closing_index],
                ]
                return [*tokens[:token_index], *infix_tokens, *_rewrite_prefix_calls(tokens[closing_index + 1 :])]
    return tokens


def _rewrite_in_lists(tokens: list[PredicateToken]) -> list[PredicateToken]:
    """Rewrite `age in (1, 2)` as `age in [1, 2]`, and leave everything else unchanged."""
    rewritten_tokens = list(tokens)
    for token_index in range(len(rewritten_tokens) - 1):
        if rewritten_tokens[token_index] == ("word", "in") and rewritten_tokens[token_index + 1][1] == "(":
            _, closing_index = _find_argument_bounds(rewritten_tokens, token_index + 1)
            if closing_index:
                rewritten_tokens[token_index + 1], rewritten_tokens[closing_index] = (("other", "["), ("other", "]"))
    return rewritten_tokens


def _starts_condition(tokens: list[PredicateToken], token_index: int) -> bool:
    """Return whether a condition can begin at this token, that is, at the start or after a bracket or connective."""
    if token_index == 0:
        return True
    kind, text = tokens[token_index - 1]
    return kind != "property" and text in ("(", "and", "or", "not")


def _find_argument_bounds(tokens: list[PredicateToken], open_index: int) -> tuple[int, int]:
    """Return the positions of the comma between two arguments and the closing bracket."""
    depth, comma_index = 0, 0
    for token_index in range(open_index, len(tokens)):
        text = tokens[token_index][1]
        depth += (text in "([") - (text in ")]")
        if depth == 0:
            return comma_index, token_index
        if text == "," and depth == 1:
            comma_index = token_index
    return 0, 0


def _parameter_types(
    tokens: list[PredicateToken], properties: Mapping[str, PropertyType], arguments: Mapping[str, Any]
) -> dict[str, str]:
    used_positions = {text[1:]: token_index for token_index, (kind, text) in enumerate(tokens) if kind == "variable"}
    for parameter_name in arguments:
        if parameter_name not in used_positions:
            raise InputError(f"parameter ${parameter_name} is not used in the predicate", reason="unused parameter")
        if _RESERVED_NAME.fullmatch(parameter_name):
            message = f"the parameter name ${parameter_name} is reserved in predicates"
            raise InputError(message, reason="reserved name")
    for parameter_name in used_positions:
        if parameter_name not in arguments:
            raise InputError(f"parameter ${parameter_name} has no value", reason="missing parameter")
    return {
        parameter_name: _declare_parameter(tokens, token_index, properties, arguments[parameter_name])
        for parameter_name, token_index in used_positions.items()
    }


def _declare_parameter(
    tokens: list[PredicateToken], token_index: int, properties: Mapping[str, PropertyType], value: Any
) -> str:
    """Return the type to declare for a parameter: the compared property's type or, failing that, the value's type."""
    comparison, operand_text = "", ""
    if token_index >= 2 and tokens[token_index - 1][1] in _COMPARISONS:
        comparison, operand_text = tokens[token_index - 1][1], tokens[token_index - 2][1]
    elif token_index + 2 < len(tokens) and tokens[token_index + 1][1] in _COMPARISONS:
        comparison, operand_text = tokens[token_index + 1][1], tokens[token_index + 2][1]
    property_type = properties.get(operand_text)
    if property_type is None:
        return infer_type_name(value)
    if comparison == "in":
        return parameter_declaration(PropertyType(property_type.scalar, is_list=True), value)
    return parameter_declaration(property_type.element_type() if comparison == "contains" else property_type, value)


def parameter_declaration(property_type: PropertyType, value: Any = 0) -> str:
    """Return a parameter's declaration. Enums are declared as strings, and `?` is added only if the value is None."""
    parameter_type = PropertyType(
        property_type.scalar, value is None, is_list=property_type.is_list, vector_dim=property_type.vector_dim
    )
    return parameter_type.display()
