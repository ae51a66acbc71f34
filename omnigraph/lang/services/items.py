"""The results of the language services, and the order in which completions are offered.

Ranking depends only on the typed prefix and on the order in which candidates are listed, so all editors show the same
order.
"""

from collections.abc import Iterable
from typing import Literal

from omnigraph.errors.diagnostics import Span
from omnigraph.records.frozen import record

ItemKind = Literal["keyword", "type", "property", "edge", "variable", "parameter", "function", "annotation"]


@record
class Candidate:
    """A name that may be inserted at the cursor. `insert_text` defaults to the label."""

    label: str
    kind: ItemKind
    detail: str = ""
    insert_text: str = ""


@record
class CompletionItem:
    """A completion. Inserting it replaces the characters in `replaced` with `insert_text`."""

    label: str
    kind: ItemKind
    detail: str
    insert_text: str
    replaced: Span


@record
class HoverText:
    """An explanation in Markdown, and the characters that it explains."""

    contents: str
    span: Span


def rank_candidates(candidates: Iterable[Candidate], typed: str, replaced: Span) -> tuple[CompletionItem, ...]:
    """Return the candidates that match the typed prefix, sorted by how well they match.

    Labels that begin with the prefix come first, with exact-case matches before all others. Labels in which a later
    word begins with the prefix come last.

    >>> names = [Candidate(label, "property") for label in ("age", "Name", "first_name", "name")]
    >>> [item.label for item in rank_candidates(names, "na", Span(0, 2))]
    ['name', 'Name', 'first_name']
    """
    ranked = []
    for position, candidate in enumerate(dict.fromkeys(candidates)):
        rank = _match_rank(candidate.label, typed)
        if rank is not None:
            ranked.append((rank, position, candidate))
    return tuple(
        CompletionItem(
            candidate.label, candidate.kind, candidate.detail, candidate.insert_text or candidate.label, replaced
        )
        for _, _, candidate in sorted(ranked, key=lambda entry: entry[:2])
    )


def _match_rank(label: str, typed: str) -> int | None:
    if label.startswith(typed):
        return 0
    lower_label, lower_typed = label.lower(), typed.lower()
    if lower_label.startswith(lower_typed):
        return 1
    inner_words = lower_label.lstrip("$@").split("_")[1:]
    return 2 if any(word.startswith(lower_typed.lstrip("$@")) for word in inner_words) else None
