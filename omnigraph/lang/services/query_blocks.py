"""The query block that contains the cursor, and simpler versions of text that the parser rejects.

A simpler version keeps the structure around the cursor: finished blocks are replaced with minimal blocks, and earlier
lines of the open block are dropped.
"""

from collections.abc import Iterator
from itertools import pairwise

from omnigraph.records.frozen import record

from .cursor import TextToken, scan_tokens
from .expected import ReadTerminal

_MINIMAL_BLOCKS = {
    "match": "{ $_: A }",
    "return": "{ 1 }",
    "distinct": "{ 1 }",
    "order": "{ 1 }",
    "having": "{ 1 = 1 }",
}
_BLOCK_WORDS = {"MATCH": "match", "NOT": "match", "OPTIONAL": "match", "_RETURN": "return", "DISTINCT": "return"}
_BLOCK_WORDS |= {"_ORDER": "order", "_HAVING": "having"}
_QUERY_HEAD = "query q() { "


@record
class Block:
    """The innermost block around the cursor: its kind, and the type or variable whose properties it lists.

    `used_names` are the properties that the block already assigns. `in_case` is true inside a `case`.
    """

    kind: str
    owner: str = ""
    used_names: tuple[str, ...] = ()
    is_insert: bool = False
    in_case: bool = False


def find_block(read: tuple[ReadTerminal, ...]) -> Block:
    """Return the innermost block that is still open after the given terminals."""
    open_blocks: list[tuple[Block, int]] = [(Block("top"), 0)]
    for index, terminal in enumerate(read):
        if terminal.name == "LBRACE":
            open_blocks.append((_opened_block(read, index, len(open_blocks)), index + 1))
        elif terminal.name == "LPAR" and len(open_blocks) == 1:
            open_blocks.append((Block("parameters"), index + 1))
        elif len(open_blocks) > 1 and (
            terminal.name == "RBRACE" or (terminal.name == "RPAR" and open_blocks[-1][0].kind == "parameters")
        ):
            open_blocks.pop()
    block, start = open_blocks[-1]
    return _complete_block(block, read[start:])


def _opened_block(read: tuple[ReadTerminal, ...], index: int, depth: int) -> Block:
    previous = read[index - 1] if index else ReadTerminal("", "")
    before = read[index - 2] if index > 1 else ReadTerminal("", "")
    if depth == 1:
        return Block("body")
    if previous.name in _BLOCK_WORDS:
        return Block(_BLOCK_WORDS[previous.name])
    if previous.name == "TYPE_NAME":
        return Block("assign", previous.text, is_insert=before.name in ("INSERT", "UPSERT"))
    if previous.name == "_SET":
        return Block("assign", before.text)
    return Block("hops")


def _complete_block(block: Block, inner: tuple[ReadTerminal, ...]) -> Block:
    names = [terminal.name for terminal in inner]
    in_case = names.count("CASE") > names.count("END")
    if block.kind == "assign":
        pairs = pairwise(inner)
        used_names = tuple(name.text for name, colon in pairs if colon.name == "COLON")
        return Block("assign", block.owner, used_names, block.is_insert, in_case)
    if block.kind == "body" and "_WHERE" in names:
        statement = max(
            (
                index
                for index, name in enumerate(names)
                if name in ("UPDATE", "DELETE", "INSERT", "UPSERT", "PATCH", "MATCH")
            ),
            default=0,
        )
        if "_WHERE" in names[statement:]:
            return Block("row", inner[statement + 1].text, in_case=in_case)
    return Block(block.kind, block.owner, in_case=in_case)


def simpler_versions(before: str) -> Iterator[str]:
    """Yield the text before the cursor, followed by simpler versions that can be continued in the same way."""
    tokens = scan_tokens(before, 0, len(before))
    if tokens and tokens[0].text != "query":
        before = before[: tokens[0].start] + _QUERY_HEAD + before[tokens[0].start :]
        tokens = scan_tokens(before, 0, len(before))
    yield before
    simple = _replace_finished_blocks(before, tokens)
    yield simple
    tokens = scan_tokens(simple, 0, len(simple))
    open_brace = _innermost_brace(tokens)
    if open_brace is not None:
        line_start = simple.rfind("\n") + 1
        if line_start > open_brace:
            yield simple[:open_brace] + simple[line_start:]
        yield simple[:open_brace]


def _replace_finished_blocks(text: str, tokens: list[TextToken]) -> str:
    """Replace the finished blocks in the body with minimal blocks."""
    pieces, copied, depth, start, word = [], 0, 0, 0, ""
    for index, token in enumerate(tokens):
        if token.text == "{":
            depth += 1
            if depth == 2:
                start, word = token.start, tokens[index - 1].text
        elif token.text == "}":
            if depth == 2 and word in _MINIMAL_BLOCKS:
                pieces += [text[copied:start], _MINIMAL_BLOCKS[word]]
                copied = token.end
            depth -= 1
    return "".join([*pieces, text[copied:]])


def _innermost_brace(tokens: list[TextToken]) -> int | None:
    """Return the offset after the innermost open brace, or None if no brace is open."""
    open_braces: list[int] = []
    for token in tokens:
        if token.text == "{":
            open_braces.append(token.end)
        elif token.text == "}" and open_braces:
            open_braces.pop()
    return open_braces[-1] if open_braces else None
