"""Compute LALR tables from a grammar file. Only this module uses lark, which is needed only for development.

The tables must not depend on the order in which Python iterates over sets, so that they can be compared with the saved
tables.
"""

from collections.abc import Mapping
from typing import Any

from .lalr_parser import GrammarTables, KeptChild, Rule
from .lexer import Terminal

LARK_OPTIONS: dict[str, Any] = {
    "parser": "lalr",
    "lexer": "contextual",
    "propagate_positions": True,
    "maybe_placeholders": True,
    "start": "declaration",
}


def compile_grammar(grammar: str) -> GrammarTables:
    """Return the tables for a grammar."""
    from lark import Lark

    lark_parser: Any = Lark(grammar, **LARK_OPTIONS)
    parse_table, lexer_conf = lark_parser.parser.parser._parse_table, lark_parser.lexer_conf
    state_numbers = _number_states(parse_table)
    ordered_states = sorted(state_numbers, key=lambda state: state_numbers[state])
    symbols = sorted({symbol for actions in parse_table.states.values() for symbol in actions})
    rules = sorted(
        {arg for state in ordered_states for arg in _reduced_rules(parse_table.states[state])}, key=_rule_order
    )
    rule_numbers = {rule: number for number, rule in enumerate(rules)}
    ignored_terminals, ranked_terminals = set(lexer_conf.ignore), sorted(lark_parser.terminals, key=_rank_key)
    return GrammarTables(
        symbols=symbols,
        terminals=[
            Terminal(terminal.name, terminal.pattern.to_regexp(), ranked_terminals.index(terminal))
            for terminal in lark_parser.terminals
            if terminal.name not in ignored_terminals
        ],
        ignored_pattern="|".join(
            terminal.pattern.to_regexp() for terminal in lark_parser.terminals if terminal.name in ignored_terminals
        ),
        rules=[_convert_rule(rule) for rule in rules],
        states=[
            _pack_state(parse_table.states[state], symbols, state_numbers, rule_numbers) for state in ordered_states
        ],
        start_state=state_numbers[parse_table.start_states["declaration"]],
        end_state=state_numbers[parse_table.end_states["declaration"]],
    )


def _number_states(parse_table: Any) -> dict[Any, int]:
    """Number the states in depth-first order from the start states, because lark's own numbers depend on set order."""
    numbers: dict[Any, int] = {}
    pending_states = sorted(parse_table.start_states.values())
    while pending_states:
        state = pending_states.pop()
        if state not in numbers:
            numbers[state] = len(numbers)
            actions = parse_table.states[state]
            next_states = [actions[symbol][1] for symbol in sorted(actions) if not _is_rule(actions[symbol][1])]
            pending_states += reversed(next_states)
    return numbers


def _pack_state(
    actions: Mapping[str, Any], symbols: list[str], state_numbers: Mapping[Any, int], rule_numbers: Mapping[Any, int]
) -> str:
    numbers: list[int] = []
    for symbol in sorted(actions):
        target = actions[symbol][1]
        action = -1 - rule_numbers[target] if _is_rule(target) else state_numbers[target]
        numbers += [symbols.index(symbol), action]
    return " ".join(map(str, numbers))


def _is_rule(target: Any) -> bool:
    return hasattr(target, "expansion")


def _reduced_rules(actions: Mapping[str, Any]) -> list[Any]:
    return [target for _, target in actions.values() if _is_rule(target)]


def _rule_order(rule: Any) -> tuple[str, list[str]]:
    return rule.origin.name, [symbol.name for symbol in rule.expansion]


def _convert_rule(rule: Any) -> Rule:
    """Convert a rule from lark, and determine which of its symbols become children in the parse tree."""
    missing_parts = _count_missing_parts(rule)
    kept_children, missing_before = [], 0
    for index, symbol in enumerate(rule.expansion):
        missing_before += missing_parts[index]
        if rule.options.keep_all_tokens or not (symbol.is_term and symbol.filter_out):
            is_inlined = not symbol.is_term and symbol.name.startswith("_")
            kept_children.append(KeptChild(index, is_inlined, missing_before))
            missing_before = 0
    missing_at_end = missing_before + missing_parts[-1]
    keeps_all = len(kept_children) == len(rule.expansion) and not any(
        kept.is_inlined or kept.missing_before for kept in kept_children
    )
    return Rule(
        origin=rule.origin.name,
        symbol_count=len(rule.expansion),
        tree_name=rule.alias or rule.options.template_source or rule.origin.name,
        unwraps=bool(rule.options.expand1 and not rule.alias),
        kept_children=None if keeps_all and not missing_at_end else tuple(kept_children),
        missing_at_end=missing_at_end,
    )


def _count_missing_parts(rule: Any) -> list[int]:
    """Return the number of missing optional parts before each symbol and after the last symbol.

    Lark stores a flag for each part of the original rule: true for a missing part, and false for a symbol.
    """
    counts = [0]
    for is_missing in rule.options.empty_indices or [False] * len(rule.expansion):
        if is_missing:
            counts[-1] += 1
        else:
            counts.append(0)
    return counts


def _rank_key(terminal: Any) -> tuple[int, int, int, str]:
    max_width = terminal.pattern.max_width
    return (-terminal.priority, -max_width, -len(terminal.pattern.value), terminal.name)
