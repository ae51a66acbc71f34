"""Rewrite fragments of Cypher and SQL, such as conditions and columns, in the query language.

Rewriting is best-effort and is used only for hints. The caller parses the result before showing it.
"""

import re
from collections.abc import Callable

_PIECES = re.compile(
    r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|\$?[A-Za-z_]\w*(?:\s*\.\s*[A-Za-z_]\w*)?|<>|.""", re.DOTALL
)
_OPERAND = r"""('[^']*'|"[^"]*"|[\w.$]+)"""
_BETWEEN = re.compile(rf"(?i)((?:[a-z_]\w*\.)?[a-z_]\w*)\s+(not\s+)?between\s+{_OPERAND}\s+and\s+{_OPERAND}")
_KEYWORD = re.compile("and|or|not|is|null|in|contains|starts_with|as|asc|desc|true|false|distinct")
_FUNCTION = re.compile("count|sum|avg|min|max|collect")

NameWriter = Callable[[str], str]


def rewrite_expression(text: str, write_name: NameWriter) -> str:
    """Rewrite an expression, condition or list. `write_name` rewrites a name such as `age` or `p.age`.

    >>> rewrite_expression("p.age <> 3 AND name = 'x'", lambda name: f"${name}")
    '$p.age != 3 and $name = "x"'
    """
    text = _BETWEEN.sub(_write_bounds, re.sub(r"(?i)\bstarts\s+with\b", "starts_with", text))
    return "".join(_rewrite_piece(piece, write_name) for piece in _PIECES.findall(text)).strip()


def _write_bounds(between: re.Match[str]) -> str:
    name, negation, lower_bound, upper_bound = between.groups()
    bounds = f"{name} >= {lower_bound} and {name} <= {upper_bound}"
    return f"not ({bounds})" if negation else bounds


def _rewrite_piece(piece: str, write_name: NameWriter) -> str:
    if piece.startswith("'"):
        return '"' + piece[1:-1].replace('"', r"\"") + '"'
    if piece == "<>":
        return "!="
    if not re.fullmatch(r"[A-Za-z_].*", piece, re.DOTALL):
        return piece
    lower_piece = piece.lower()
    if _KEYWORD.fullmatch(lower_piece) or _FUNCTION.fullmatch(lower_piece):
        return lower_piece
    return write_name(re.sub(r"\s", "", piece))


def edge_word(edge_name: str) -> str:
    """Return the word that a query uses to traverse an edge type.

    >>> edge_word("WORKS_AT"), edge_word("KNOWS"), edge_word("WorksAt")
    ('worksAt', 'knows', 'worksAt')
    """
    words = edge_name.split("_") if "_" in edge_name or edge_name.isupper() else [edge_name]
    folded_words = [word.lower() for word in words] if len(words) > 1 or edge_name.isupper() else words
    return folded_words[0][:1].lower() + folded_words[0][1:] + "".join(map(str.capitalize, folded_words[1:]))


def type_name(name: str) -> str:
    """Capitalize the first letter of a name, as in type names."""
    return name[:1].upper() + name[1:]


def variable_name(name: str) -> str:
    """Make the first letter of a name lowercase, as in variable names."""
    return name[:1].lower() + name[1:]


def split_list(text: str) -> list[str]:
    """Split a list at the commas that are outside brackets and quotes."""
    items, depth, start = [], 0, 0
    for piece in re.finditer(r"""'[^']*'|"[^"]*"|[(\[{]|[)\]}]|,""", text):
        if piece[0] in "([{":
            depth += 1
        elif piece[0] in ")]}":
            depth -= 1
        elif piece[0] == "," and depth == 0:
            items.append(text[start : piece.start()].strip())
            start = piece.end()
    return [*items, text[start:].strip()]
