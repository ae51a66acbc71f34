r"""Split shell input into statements.

A statement is a backslash command, one of the program's commands, or text in the query language. A backslash command
ends with its line. Other statements end when their braces balance; a line that ends in `\` continues on the next one,
and `;` ends a statement immediately. This module only processes text; `session.py` runs the statements.
"""

import re
from collections.abc import Iterator

from omnigraph.lang.coarse_scan import lexemes

_WRITE_WORDS = frozenset({"insert", "upsert", "patch", "update", "delete"})
_FIRST_WORDS = _WRITE_WORDS | {"match"}
# Words that continue a query on the next line even though the braces already balance.
_CONTINUATIONS = frozenset({"return", "having", "order", "limit", "offset", "union", "where", "set"})
_UNFINISHED_WORDS = _CONTINUATIONS | {"all", "distinct", "and", "or", "not"}
_DECLARATION = re.compile(r"query\s+\w+\s*\(")
_FIRST_WORD = re.compile(r"\w+")


def is_query_text(statement: str) -> bool:
    """Return whether a statement is in the query language rather than a command.

    >>> is_query_text("match { $p: Person } return { $p }"), is_query_text("query --query q.gq"), is_query_text("log")
    (True, False, False)
    """
    stripped = _skip_comments(statement)
    return _first_word(stripped) in _FIRST_WORDS or _DECLARATION.match(stripped) is not None


def is_mutation(statement: str) -> bool:
    """Return whether a query-language statement changes data.

    >>> is_mutation("match { $p: Person } delete $p"), is_mutation("match { $p: Person } return { $p.update }")
    (True, False)
    """
    body = statement.partition("{")[2].rpartition("}")[0] if _is_declaration(statement) else statement
    return any(word in _WRITE_WORDS for word in _outer_words(body))


def explained_query(statement: str) -> str | None:
    """Return the query in `explain match { .. } return { .. }`, or None."""
    word, _, query = statement.partition(" ")
    return query if word == "explain" and is_query_text(query) else None


def is_complete(statement: str) -> bool:
    """Return whether a statement is complete, that is, whether it can be run without reading more input.

    >>> is_complete("match { $p: Person }"), is_complete("match { $p: Person } return { $p.name }")
    (False, True)
    >>> is_complete("branch list"), is_complete("query -e 'match {")
    (True, False)
    """
    if statement.startswith("\\"):
        return True
    if not _is_balanced(statement):
        return False
    if not is_query_text(statement):
        explained = explained_query(statement)
        return explained is None or is_complete(explained)
    return _has_all_parts(statement)


def _is_balanced(text: str) -> bool:
    """Return whether every brace and, in the query language, every string and comment is closed."""
    kinds = [lexeme.kind for lexeme in lexemes(text, 0, len(text))]
    return kinds.count("open") <= kinds.count("close") and not ("broken" in kinds and is_query_text(text))


def _has_all_parts(statement: str) -> bool:
    if _is_declaration(statement):
        return _last_token(statement)[1] == "}"
    words = _outer_words(statement)
    if _last_token(statement)[1] in _UNFINISHED_WORDS:
        return False
    if any(word in _WRITE_WORDS for word in words):
        needs_condition = words[0] in ("update", "delete") and "where" not in words
        return not needs_condition and ("{" in statement or "where" in words)
    return words.count("return") >= words.count("match") and "{" in statement.rpartition("return")[2]


def continues_query(line: str) -> bool:
    """Return whether a line continues the preceding query, as `order { $p.name }` does."""
    return _first_word(line.lstrip()) in _CONTINUATIONS


def split_statements(lines: Iterator[str]) -> Iterator[str]:
    r"""Yield the statements in lines that are all available in advance, such as those in a file.

    >>> list(split_statements(iter(["branch list", "match { $p: P }", "return { $p }", "limit 1", "", r"\q"])))
    ['branch list', 'match { $p: P }\nreturn { $p }\nlimit 1', '\\q']
    """
    buffer = StatementBuffer()
    for line in lines:
        if buffer.is_ready and not continues_query(line):
            yield buffer.take()
        buffer.add_line(line)
        if buffer.is_ready and not (buffer.may_continue and line.strip()):
            yield buffer.take()
    if buffer.text:
        yield buffer.take()


class StatementBuffer:
    """The lines of a statement that is being entered."""

    def __init__(self) -> None:
        self.text = ""
        self._is_continued = False  # the last line ended in a backslash
        self._is_terminated = False

    def add_line(self, line: str) -> None:
        """Add a line; empty lines and comments before a statement are skipped, and an empty line ends a statement."""
        stripped = line.strip()
        if not self.text and (not stripped or stripped.startswith(("//", "#"))):
            return
        self._is_continued = stripped.endswith("\\") and stripped != "\\"
        content = stripped[:-1].rstrip() if self._is_continued else line.rstrip()
        text = f"{self.text}\n{content}" if self.text else content.lstrip()
        end, ending = _last_token(text)
        has_terminator = ending == ";" and not self._is_continued
        self._is_terminated = has_terminator or (not stripped and _is_balanced(text))
        self.text = text[:end].rstrip() if has_terminator else text

    @property
    def is_ready(self) -> bool:
        """Whether the text is a complete statement."""
        return bool(self.text) and not self._is_continued and (self._is_terminated or is_complete(self.text))

    @property
    def may_continue(self) -> bool:
        """Whether the next line may belong to this statement even though the text is complete."""
        return not self._is_terminated and not self.text.startswith("\\") and is_query_text(self.text)

    def take(self) -> str:
        """Return the statement and empty the buffer."""
        statement, self.text = self.text, ""
        self._is_continued = self._is_terminated = False
        return statement


def _last_token(text: str) -> tuple[int, str]:
    """Return the position and the text of the last token that is not a comment."""
    position, token = 0, ""
    for kind, start, end in lexemes(text, 0, len(text)):
        if kind != "comment":
            position, token = start, text[start:end]
    return position, token


def _is_declaration(statement: str) -> bool:
    return _DECLARATION.match(_skip_comments(statement)) is not None


def _skip_comments(statement: str) -> str:
    first = next((lexeme for lexeme in lexemes(statement, 0, len(statement)) if lexeme.kind != "comment"), None)
    return statement[first.start :] if first is not None else ""


def _first_word(text: str) -> str:
    word = _FIRST_WORD.match(text)
    return word[0] if word is not None else ""


def _outer_words(statement: str) -> list[str]:
    """Return the words outside braces, without variables and properties."""
    words, depth = [], 0
    for kind, start, end in lexemes(statement, 0, len(statement)):
        depth += (kind == "open") - (kind == "close")
        if kind == "word" and depth == 0 and statement[start - 1 : start] not in ("$", "."):
            words.append(statement[start:end])
    return words
