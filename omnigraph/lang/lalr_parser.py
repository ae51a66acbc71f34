"""Parse one declaration with LALR tables.

`compile_grammar` computes the tables. This module must not import lark, because importing and restoring lark's parser
takes longer than parsing a short text. A test compares this parser with lark's on generated texts.
"""

from collections.abc import Sequence
from typing import Any

from omnigraph.records.frozen import record

from .lexer import Terminal, TerminalMatcher, compile_matcher
from .parse_tree import ParseTree, Token

END = "$END"  # the terminal after the last token

# A state, the tree or token that led to it, and the start and end of its text. The text includes the brackets and
# keywords that the tree omits; if there is no text, the start and the end are None.
_StackEntry = tuple[int, Any, int | None, int | None]


@record
class KeptChild:
    """A symbol in a rule that becomes a child of the rule's tree.

    If `is_inlined` is true, the symbol is replaced by its own children. `missing_before` is the number of missing
    optional parts before the symbol.
    """

    index: int
    is_inlined: bool
    missing_before: int


@record
class Rule:
    """A grammar rule: the symbol that the rule defines, and how the symbols in the rule become a tree.

    `kept_children` is None if every symbol becomes a child. If `unwraps` is true, a tree with one child is replaced by
    that child.
    """

    origin: str
    symbol_count: int
    tree_name: str
    unwraps: bool
    kept_children: tuple[KeptChild, ...] | None
    missing_at_end: int

    @property
    def is_renaming(self) -> bool:
        """Whether the rule only gives another name to a symbol, so that the symbol's value does not change."""
        return self.unwraps and self.symbol_count == 1 and self.kept_children is None


@record
class GrammarTables:
    """A grammar in the form that the parser uses.

    Each state is a string of numbers, in which the number of each symbol is followed by its action. An action is the
    number of the next state, or -1 - n to reduce by rule n. The terminals are in grammar order.
    """

    symbols: Sequence[str]
    terminals: Sequence[Terminal]
    ignored_pattern: str
    rules: Sequence[Rule]
    states: Sequence[str]
    start_state: int
    end_state: int


class UnexpectedText(Exception):  # noqa: N818 - never leaves this package
    """Raised if the text at `offset` matches none of `allowed_terminals`, the terminals that may occur there."""

    def __init__(self, offset: int, allowed_terminals: frozenset[str]) -> None:
        super().__init__(offset)
        self.offset, self.allowed_terminals = offset, allowed_terminals


class _StateActions(dict[int, dict[str, int]]):
    """The actions for each state, keyed by symbol and decoded when the state is first reached."""

    def __init__(self, tables: GrammarTables) -> None:
        super().__init__()
        self._tables = tables

    def __missing__(self, state: int) -> dict[str, int]:
        numbers = list(map(int, self._tables.states[state].split()))
        symbols = self._tables.symbols
        actions = {symbols[symbol]: action for symbol, action in zip(numbers[::2], numbers[1::2], strict=True)}
        self[state] = actions
        return actions


class _StateMatchers(dict[int, TerminalMatcher]):
    """The matcher for each state. States that allow the same terminals share a matcher."""

    def __init__(self, tables: GrammarTables, actions: _StateActions) -> None:
        super().__init__()
        self._ranked_terminals = sorted(tables.terminals, key=lambda terminal: terminal.rank)
        self._actions = actions
        self._matchers_by_names: dict[tuple[str, ...], TerminalMatcher] = {}

    def __missing__(self, state: int) -> TerminalMatcher:
        allowed = self._actions[state]
        terminals = [terminal for terminal in self._ranked_terminals if terminal.name in allowed]
        names = tuple([terminal.name for terminal in terminals])
        matcher = self._matchers_by_names.get(names)
        if matcher is None:
            matcher = self._matchers_by_names[names] = TerminalMatcher(terminals)
        self[state] = matcher
        return matcher


class Parser:
    """Parses declarations in one language. Threads may share a parser."""

    def __init__(self, tables: GrammarTables) -> None:
        self.terminals = tables.terminals
        self._tables = tables
        self._actions = _StateActions(tables)
        self._matchers = _StateMatchers(tables, self._actions)
        self._skip_ignored = compile_matcher(f"(?:{tables.ignored_pattern})*+")

    def parse(self, text: str) -> ParseTree:
        """Return the tree of a declaration. Raise `UnexpectedText` if the text is not a declaration."""
        stack = self._read_tokens(text, [])
        while (state := stack[-1][0]) != self._tables.end_state:
            action = self._actions[state].get(END)
            if action is None:
                raise UnexpectedText(len(text), self._allowed_terminals(stack))
            self._reduce(stack, self._tables.rules[-1 - action])
        tree: ParseTree = stack[-1][1]
        return tree

    def read_prefix(self, text: str) -> tuple[list[Token], frozenset[str]]:
        """Return the tokens at the beginning of a declaration, and the terminals that may follow them.

        Raise `UnexpectedText` if no declaration begins with the text.
        """
        tokens: list[Token] = []
        return tokens, self._allowed_terminals(self._read_tokens(text, tokens))

    def _read_tokens(self, text: str, tokens: list[Token]) -> list[_StackEntry]:
        """Process all tokens in a text, and append them to `tokens`. Return the stack."""
        stack: list[_StackEntry] = [(self._tables.start_state, None, None, None)]
        offset = 0
        while (offset := self._skip_ignored(text, offset).end()) < len(text):
            terminal_match = self._matchers[stack[-1][0]].match(text, offset)
            if terminal_match is None:
                raise UnexpectedText(offset, self._allowed_terminals(stack))
            token = Token(*terminal_match, offset)
            tokens.append(token)
            self._shift(stack, token)
            offset = token.end_pos
        return stack

    def _shift(self, stack: list[_StackEntry], token: Token) -> None:
        """Perform the reductions that the token requires, then push the token."""
        while True:
            action = self._actions[stack[-1][0]].get(token.type)
            if action is None:
                raise UnexpectedText(token.start_pos, self._allowed_terminals(stack))
            if action >= 0:
                stack.append((action, token, token.start_pos, token.end_pos))
                return
            self._reduce(stack, self._tables.rules[-1 - action])

    def _reduce(self, stack: list[_StackEntry], rule: Rule) -> None:
        """Replace the values that match a rule with the rule's tree."""
        if rule.is_renaming:
            _, value, start_pos, end_pos = stack.pop()
        else:
            values, start_pos, end_pos = _pop_values(stack, rule.symbol_count)
            children = values if rule.kept_children is None else _select_children(values, rule.kept_children)
            children += [None] * rule.missing_at_end
            if rule.unwraps and len(children) == 1:
                value, start_pos, end_pos = _unwrap(children[0], start_pos, end_pos)
            else:
                value = ParseTree(rule.tree_name, children, start_pos, end_pos)
        stack.append((self._actions[stack[-1][0]][rule.origin], value, start_pos, end_pos))

    def _allowed_terminals(self, stack: Sequence[_StackEntry]) -> frozenset[str]:
        """Return the terminals that the parser would accept next."""
        # A state's table also lists terminals that turn out to be impossible after a reduction.
        states = [entry[0] for entry in stack]
        candidates = [symbol for symbol in self._actions[states[-1]] if symbol.isupper()]
        return frozenset(terminal for terminal in candidates if self._would_accept(states, terminal))

    def _would_accept(self, states: Sequence[int], terminal: str) -> bool:
        reached = list(states)
        while reached[-1] != self._tables.end_state:
            action = self._actions[reached[-1]].get(terminal)
            if action is None or action >= 0:
                return action is not None
            rule = self._tables.rules[-1 - action]
            del reached[len(reached) - rule.symbol_count :]
            reached.append(self._actions[reached[-1]][rule.origin])
        return True


def _pop_values(stack: list[_StackEntry], count: int) -> tuple[list[Any], int | None, int | None]:
    """Pop the top `count` entries, and return their values and the extent of these values."""
    if not count:
        return [], None, None
    entries = stack[-count:]
    del stack[-count:]
    start_pos, end_pos = entries[0][2], entries[-1][3]
    if start_pos is None:
        start_pos = next((entry[2] for entry in entries if entry[2] is not None), None)
    if end_pos is None:
        end_pos = next((entry[3] for entry in reversed(entries) if entry[3] is not None), None)
    return [entry[1] for entry in entries], start_pos, end_pos


def _select_children(values: Sequence[Any], kept_children: Sequence[KeptChild]) -> list[Any]:
    """Return the children of a rule's tree, with None for missing parts and with inlined symbols expanded."""
    children: list[Any] = []
    for kept in kept_children:
        children += [None] * kept.missing_before
        if not kept.is_inlined:
            children.append(values[kept.index])
        elif children:
            children += values[kept.index].children
        else:  # a long repetition is a chain of inlined trees, so its list is extended instead of copied
            children = values[kept.index].children
    return children


def _unwrap(value: Any, start_pos: int | None, end_pos: int | None) -> tuple[Any, int | None, int | None]:
    """Return a value without the brackets around it, and its extent."""
    if not isinstance(value, ParseTree):  # brackets around a token are not part of the token's extent
        return (value, value.start_pos, value.end_pos) if value is not None else (None, None, None)
    if value.start_pos is None:  # a tree without text has the extent of the brackets around it
        value.start_pos = start_pos
    if value.end_pos is None:
        value.end_pos = end_pos
    return value, start_pos, end_pos
