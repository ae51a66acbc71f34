"""Find mistakes in RE2 regular expressions without using an RE2 library.

This module recognizes only definite mistakes: unbalanced brackets, misplaced repetitions, bad escapes, and constructs
from other dialects that RE2 does not support. All other mistakes are reported when the query runs.
"""

import re

_MAX_REPEAT = 1000
_REPEAT = re.compile(r"\{(\d{1,9})(?:(,)(\d{0,9}))?\}")
_UNSUPPORTED_GROUPS = {
    "(?=": "lookahead is not supported",
    "(?!": "lookahead is not supported",
    "(?<=": "lookbehind is not supported",
    "(?<!": "lookbehind is not supported",
    "(?>": "atomic groups are not supported",
    "(?(": "conditional groups are not supported",
    "(?#": "comments are not supported",
    "(?P=": "backreferences are not supported",
}
# Letters and digits that may follow a backslash. RE2 also accepts any punctuation there.
_KNOWN_ESCAPES = frozenset("aftnrvxpPCQEdDsSwWbBAz01234567")


def find_pattern_error(pattern: str) -> str | None:
    r"""Describe the mistake in a pattern, or return None if no mistake was found.

    >>> find_pattern_error(r"^A.*\d{2,3}$"), find_pattern_error("a(b")
    (None, 'missing `)`')
    """
    offset, open_groups, can_repeat = 0, 0, False
    while offset < len(pattern):
        character = pattern[offset]
        if character == "\\":
            problem, offset = _skip_escape(pattern, offset)
            can_repeat = True
        elif character == "[":
            problem, offset = _skip_class(pattern, offset)
            can_repeat = True
        elif character == "(":
            problem, offset = _skip_group_opening(pattern, offset)
            open_groups, can_repeat = open_groups + 1, False
        elif character == ")":
            problem = None if open_groups else "unexpected `)`"
            open_groups, offset, can_repeat = open_groups - 1, offset + 1, True
        elif character in "*+?" or _REPEAT.match(pattern, offset):
            problem, offset = _skip_repeat(pattern, offset, can_repeat)
            can_repeat = False
        else:
            problem, offset, can_repeat = None, offset + 1, character != "|"
        if problem is not None:
            return problem
    return "missing `)`" if open_groups else None


def _skip_escape(pattern: str, offset: int) -> tuple[str | None, int]:
    escaped = pattern[offset + 1 : offset + 2]
    if not escaped:
        return "trailing `\\`", offset + 1
    if escaped == "Q":
        end = pattern.find("\\E", offset)
        return None, len(pattern) if end < 0 else end + 2
    if escaped in "123456789" and not re.match(r"[0-7]{2}", pattern[offset + 1 : offset + 3]):
        return "backreferences are not supported", offset + 2
    if escaped.isascii() and escaped.isalnum() and escaped not in _KNOWN_ESCAPES:
        return f"unknown escape `\\{escaped}`", offset + 2
    return None, offset + 2


def _skip_class(pattern: str, offset: int) -> tuple[str | None, int]:
    """Skip `[..]`. A `]` directly after the opening bracket is an ordinary character."""
    offset += 2 if pattern.startswith("[^", offset) else 1
    first = True
    while offset < len(pattern):
        if pattern[offset] == "]" and not first:
            return None, offset + 1
        first = False
        if pattern.startswith("[:", offset) and (end := pattern.find(":]", offset + 2)) > 0:
            offset = end + 2
        elif pattern[offset] == "\\":
            offset += 2
        else:
            offset += 1
    return "missing `]`", offset


def _skip_group_opening(pattern: str, offset: int) -> tuple[str | None, int]:
    for opening, problem in _UNSUPPORTED_GROUPS.items():
        if pattern.startswith(opening, offset):
            return problem, offset
    if not pattern.startswith("(?", offset):
        return None, offset + 1
    options = re.compile(r"\(\?(?:P?<[A-Za-z0-9_]+>|[imsU]*-?[imsU]*[:)])").match(pattern, offset)
    if options is None:
        return "invalid group after `(?`", offset
    # `(?i)` has no content; the caller handles its `)` as the end of the group.
    return None, options.end() - 1 if options.group().endswith(")") else options.end()


def _skip_repeat(pattern: str, offset: int, can_repeat: bool) -> tuple[str | None, int]:
    bounds = _REPEAT.match(pattern, offset)
    end = bounds.end() if bounds is not None else offset + 1
    if not can_repeat:
        return f"nothing to repeat before `{pattern[offset:end]}`", end
    if bounds is not None:
        low = int(bounds.group(1))
        high = int(bounds.group(3)) if bounds.group(3) else low
        if low > _MAX_REPEAT or high > _MAX_REPEAT or high < low:
            return f"invalid repetition `{bounds.group()}`", end
    return None, end + 1 if pattern.startswith("?", end) else end
