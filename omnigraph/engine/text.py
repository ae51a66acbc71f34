"""Text analysis and text predicates: the tokenizer, `search`, `match_text` and `fuzzy`.

Works on any column without an index. The tokenizer is part of query semantics: an index may speed
up a query but never change its result. A text is normalized to Unicode NFKD without marks,
lowercased, and split at everything that is neither a letter nor a digit; the English stop words
below are removed, and the remaining words are stemmed (`stem.py`).
"""

import unicodedata
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import QueryExecutionError
from omnigraph.storage.ascii import cut_plain

from .rows import Ids
from .stem import stem

_WORDS = (
    "a an and are as at be but by for if in into is it no not of on or such that the their then "
    "there these they this to was will with"
)
_STOP = frozenset(_WORDS.split())
DEFAULT_EDITS = 2


@dataclass(frozen=True, slots=True, eq=False)
class Tokens:
    """Tokens of several texts: `vocabulary[codes[i]]` occurs in text `text_indexes[i]`."""

    texts: int
    owners: Ids
    codes: Ids
    words: tuple[str, ...]

    def lengths(self) -> Ids:
        """Return how many tokens each text has."""
        return np.bincount(self.owners, minlength=self.texts)

    def numbers(self, wanted: frozenset[str]) -> npt.NDArray[np.bool_]:
        """Return for each token whether it is one of `tokens`."""
        chosen = np.array([word in wanted for word in self.words], np.bool_)
        return chosen[self.codes] if len(chosen) else np.zeros(len(self.codes), np.bool_)


def tokenize(text: str) -> list[str]:
    """Return the tokens of one text, in order.

    >>> tokenize("The Crème-Brûlées of searching!")
    ['creme', 'brule', 'search']
    """
    return list(_tokenized(text))


@lru_cache(maxsize=256)
def _tokenized(text: str) -> tuple[str, ...]:
    """Tokenize with a cache: the same query is tokenized again for each part of a table."""
    tokens = analyse(pa.array([text]))
    return tuple(tokens.words[code] for code in tokens.codes)


def analyse(texts: pa.Array) -> Tokens:
    """Return the tokens of a column; a null has none."""
    owners, pieces = _cut(texts)
    encoded = pieces.dictionary_encode()
    found = [token_of(one) for one in encoded.dictionary.to_pylist()]
    words = tuple(dict.fromkeys(filter(None, found)))
    place = {word: at for at, word in enumerate(words)}
    numbers = np.array([place.get(one, -1) for one in found] or [-1], np.int64)
    codes = numbers[encoded.indices.to_numpy(zero_copy_only=False)]
    kept = codes >= 0
    return Tokens(len(texts), owners[kept], codes[kept], words)


def _cut(texts: pa.Array) -> tuple[Ids, pa.Array]:
    """Return the case-folded words of all texts, in order, and the text index of each.

    Pure ASCII texts need no Unicode folding and are split in a third of the time.
    """
    plain = pc.fill_null(pc.string_is_ascii(texts), True)
    if pc.all(plain, min_count=0).as_py():
        return cut_plain(texts)
    flags = plain.to_numpy(zero_copy_only=False)
    parts = [_part(texts, flags, cut_plain), _part(texts, ~flags, _cut_any)]
    owners = np.concatenate([positions for positions, _ in parts])
    order = np.argsort(owners, kind="stable")
    pieces = pa.concat_arrays([one for _, one in parts])
    return owners[order], pieces.take(pa.array(order))


def _part(
    texts: pa.Array, flags: npt.NDArray[np.bool_], cut: Callable[[pa.Array], tuple[Ids, pa.Array]]
) -> tuple[Ids, pa.Array]:
    chosen = np.flatnonzero(flags)
    owners, pieces = cut(texts.take(pa.array(chosen)))
    return chosen[owners], pieces


def _cut_any(texts: pa.Array) -> tuple[Ids, pa.Array]:
    folded = pc.utf8_lower(pc.utf8_normalize(texts, "NFKD"))
    bare = pc.replace_substring_regex(folded, r"\p{M}+", "")
    pieces = pc.split_pattern_regex(bare, r"[^\p{L}\p{N}]+")
    return pc.list_parent_indices(pieces).to_numpy().astype(np.int64), pieces.flatten()


def token_of(piece: str) -> str:
    """Return the token of a case-folded word; empty for a stop word."""
    return "" if piece in _STOP else stem(_ascii(piece))


def _ascii(piece: str) -> str:
    """Replace letters such as ø and ß by ASCII ones, where their Unicode names allow it."""
    return piece if piece.isascii() else "".join(map(_plain, piece))


@lru_cache(maxsize=4096)
def _plain(letter: str) -> str:
    known = {"ß": "ss", "æ": "ae", "œ": "oe", "ø": "o", "ł": "l", "đ": "d", "ð": "d", "þ": "th"}
    if letter in known:
        return known[letter]
    name = unicodedata.name(letter, "")
    base = name.removeprefix("LATIN SMALL LETTER ")
    return base[0].lower() if base != name and base[1:2] == " " else letter


def matches(
    function: Literal["search", "fuzzy", "match_text"],
    texts: pa.Array,
    query: str | None,
    edits: int | None = None,
) -> pa.Array:
    """Return where a text matches a query: by any token, or for `match_text` by the phrase."""
    if query is None:
        return pa.nulls(len(texts), pa.bool_())
    wanted, tokens = tokenize(query), analyse(texts)
    found = np.zeros(len(texts), np.bool_)
    if function == "match_text":
        found[_phrase(tokens, wanted)] = True
    else:
        known = frozenset(wanted)
        if function == "fuzzy":
            known = near(tokens.words, known, DEFAULT_EDITS if edits is None else edits)
        found[tokens.owners[tokens.numbers(known)]] = True
    if texts.null_count == 0:
        return pa.array(found)
    return pc.if_else(texts.is_valid(), pa.array(found), pa.scalar(None, pa.bool_()))


def _phrase(tokens: Tokens, wanted: list[str]) -> Ids:
    """Return the texts in which the tokens occur consecutively."""
    last = len(tokens.codes) - len(wanted) + 1
    if not wanted or last <= 0:
        return np.empty(0, np.int64)
    hits = np.ones(last, np.bool_)
    for at, word in enumerate(wanted):
        hits &= tokens.numbers(frozenset({word}))[at : at + last]
    hits &= tokens.owners[:last] == tokens.owners[len(wanted) - 1 :]
    return tokens.owners[:last][hits]


def near(words: Iterable[str], wanted: frozenset[str], edits: int) -> frozenset[str]:
    """Return the tokens within `max_edits` edits of a query token."""
    if edits < 0:
        raise QueryExecutionError(reason=f"`fuzzy` needs 0 or more edits, not {edits}")
    return frozenset(
        word for word in words if any(distance(word, one, edits) <= edits for one in wanted)
    )


def distance(one: str, other: str, most: int) -> int:
    """Return the Levenshtein distance, or `max_distance` + 1 as soon as it must be larger.

    >>> distance("serch", "search", 2), distance("cat", "elephant", 2)
    (1, 3)
    """
    if abs(len(one) - len(other)) > most:
        return most + 1
    above = list(range(len(other) + 1))
    for at, letter in enumerate(one, 1):
        row = [at]
        for place, theirs in enumerate(other, 1):
            change = above[place - 1] + (letter != theirs)
            row.append(min(above[place] + 1, row[place - 1] + 1, change))
        if min(row) > most:
            return most + 1
        above = row
    return above[-1]
