"""Text analysis and text predicates: the tokenizer, `search`, `match_text` and `fuzzy`.

Text predicates do not require an index. The tokenizer is part of the query semantics, so an index may speed up a query
but must never change its result. A string is normalized to Unicode NFKD, stripped of combining marks, lowercased, and
split at every character that is neither a letter nor a digit. The English stop words below are then removed, and the
remaining words are stemmed (`stem.py`).
"""

import unicodedata
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.engine.operators.rows import IntArray
from omnigraph.errors import QueryExecutionError
from omnigraph.records.frozen import record
from omnigraph.storage.text.ascii_tokens import tokenize_ascii

from .stem import stem

_STOP_WORD_LIST = (
    "a an and are as at be but by for if in into is it no not of on or such that the their then "
    "there these they this to was will with"
)
_STOP_WORDS = frozenset(_STOP_WORD_LIST.split())
DEFAULT_MAX_EDITS = 2


@record(eq=False)
class Tokens:
    """The tokens in several strings: the token `vocabulary[codes[i]]` occurs in string `text_indexes[i]`."""

    text_count: int
    text_indexes: IntArray
    codes: IntArray
    vocabulary: tuple[str, ...]

    def token_counts(self) -> IntArray:
        """Return the number of tokens in each string."""
        return np.bincount(self.text_indexes, minlength=self.text_count)

    def is_any_of(self, tokens: frozenset[str]) -> npt.NDArray[np.bool_]:
        """Return whether each token is one of `tokens`."""
        in_tokens = np.array([token in tokens for token in self.vocabulary], np.bool_)
        return in_tokens[self.codes] if len(in_tokens) else np.zeros(len(self.codes), np.bool_)


def tokenize(text: str) -> list[str]:
    """Return the tokens in a string, in order.

    >>> tokenize("The Crème-Brûlées of searching!")
    ['creme', 'brule', 'search']
    """
    return list(_tokenize_cached(text))


@lru_cache(maxsize=256)
def _tokenize_cached(text: str) -> tuple[str, ...]:
    """Tokenize with a cache, because the same query is tokenized again for each part of a table."""
    tokens = analyze_texts(pa.array([text]))
    return tuple(tokens.vocabulary[code] for code in tokens.codes)


def analyze_texts(texts: pa.Array) -> Tokens:
    """Return the tokens in a column of strings. A null value has no tokens."""
    text_indexes, raw_words = _split_words(texts)
    encoded_words = raw_words.dictionary_encode()
    tokens = [token_of_word(token) for token in encoded_words.dictionary.to_pylist()]
    vocabulary = tuple(dict.fromkeys(filter(None, tokens)))
    code_by_token = {entry: code for code, entry in enumerate(vocabulary)}
    dictionary_codes = np.array([code_by_token.get(token, -1) for token in tokens] or [-1], np.int64)
    codes = dictionary_codes[encoded_words.indices.to_numpy(zero_copy_only=False)]
    is_token = codes >= 0
    return Tokens(len(texts), text_indexes[is_token], codes[is_token], vocabulary)


def _split_words(texts: pa.Array) -> tuple[IntArray, pa.Array]:
    """Return the case-folded words in all strings, in order, and the index of the string that contains each word.

    Pure ASCII strings need no Unicode folding, so splitting them takes a third of the time.
    """
    is_ascii = pc.fill_null(pc.string_is_ascii(texts), True)
    if pc.all(is_ascii, min_count=0).as_py():
        return tokenize_ascii(texts)
    ascii_mask = is_ascii.to_numpy(zero_copy_only=False)
    split_subsets = [
        _split_subset(texts, ascii_mask, tokenize_ascii),
        _split_subset(texts, ~ascii_mask, _split_unicode_words),
    ]
    text_indexes = np.concatenate([subset_indexes for subset_indexes, _ in split_subsets])
    order = np.argsort(text_indexes, kind="stable")
    raw_words = pa.concat_arrays([subset_words for _, subset_words in split_subsets])
    return text_indexes[order], raw_words.take(pa.array(order))


def _split_subset(
    texts: pa.Array, subset_mask: npt.NDArray[np.bool_], split: Callable[[pa.Array], tuple[IntArray, pa.Array]]
) -> tuple[IntArray, pa.Array]:
    subset_positions = np.flatnonzero(subset_mask)
    text_indexes, raw_words = split(texts.take(pa.array(subset_positions)))
    return subset_positions[text_indexes], raw_words


def _split_unicode_words(texts: pa.Array) -> tuple[IntArray, pa.Array]:
    folded = pc.utf8_lower(pc.utf8_normalize(texts, "NFKD"))
    without_marks = pc.replace_substring_regex(folded, r"\p{M}+", "")
    word_lists = pc.split_pattern_regex(without_marks, r"[^\p{L}\p{N}]+")
    return pc.list_parent_indices(word_lists).to_numpy().astype(np.int64), word_lists.flatten()


def token_of_word(raw_word: str) -> str:
    """Return the token for a case-folded word, or an empty string for a stop word."""
    return "" if raw_word in _STOP_WORDS else stem(_fold_to_ascii(raw_word))


def _fold_to_ascii(raw_word: str) -> str:
    """Replace letters such as ø and ß with ASCII letters where their Unicode names allow it."""
    return raw_word if raw_word.isascii() else "".join(map(_fold_letter, raw_word))


@lru_cache(maxsize=4096)
def _fold_letter(letter: str) -> str:
    replacements = {"ß": "ss", "æ": "ae", "œ": "oe", "ø": "o", "ł": "l", "đ": "d", "ð": "d", "þ": "th"}
    if letter in replacements:
        return replacements[letter]
    unicode_name = unicodedata.name(letter, "")
    base_letter = unicode_name.removeprefix("LATIN SMALL LETTER ")
    return base_letter[0].lower() if base_letter != unicode_name and base_letter[1:2] == " " else letter


def match_texts(
    function: Literal["search", "fuzzy", "match_text"], texts: pa.Array, query: str | None, max_edits: int | None = None
) -> pa.Array:
    """Return whether each string matches a query: as a phrase for `match_text`, and by any token otherwise."""
    if query is None:
        return pa.nulls(len(texts), pa.bool_())
    query_tokens, tokens = tokenize(query), analyze_texts(texts)
    is_match = np.zeros(len(texts), np.bool_)
    if function == "match_text":
        is_match[_find_phrase(tokens, query_tokens)] = True
    else:
        accepted_tokens = frozenset(query_tokens)
        if function == "fuzzy":
            accepted_tokens = tokens_within_edits(
                tokens.vocabulary, accepted_tokens, DEFAULT_MAX_EDITS if max_edits is None else max_edits
            )
        is_match[tokens.text_indexes[tokens.is_any_of(accepted_tokens)]] = True
    if texts.null_count == 0:
        return pa.array(is_match)
    return pc.if_else(texts.is_valid(), pa.array(is_match), pa.scalar(None, pa.bool_()))


def _find_phrase(tokens: Tokens, phrase_tokens: list[str]) -> IntArray:
    """Return the indexes of the strings in which the tokens occur consecutively."""
    start_count = len(tokens.codes) - len(phrase_tokens) + 1
    if not phrase_tokens or start_count <= 0:
        return np.empty(0, np.int64)
    phrase_starts = np.ones(start_count, np.bool_)
    for offset, phrase_token in enumerate(phrase_tokens):
        phrase_starts &= tokens.is_any_of(frozenset({phrase_token}))[offset : offset + start_count]
    phrase_starts &= tokens.text_indexes[:start_count] == tokens.text_indexes[len(phrase_tokens) - 1 :]
    return tokens.text_indexes[:start_count][phrase_starts]


def tokens_within_edits(vocabulary: Iterable[str], query_tokens: frozenset[str], max_edits: int) -> frozenset[str]:
    """Return the tokens that are at most `max_edits` edits away from a query token."""
    if max_edits < 0:
        raise QueryExecutionError(reason=f"`fuzzy` requires 0 or more edits, not {max_edits}")
    return frozenset(
        candidate
        for candidate in vocabulary
        if any(edit_distance(candidate, query_token, max_edits) <= max_edits for query_token in query_tokens)
    )


def edit_distance(left_text: str, right_text: str, max_distance: int) -> int:
    """Return the Levenshtein distance, or `max_distance` + 1 if the distance exceeds `max_distance`.

    >>> edit_distance("serch", "search", 2), edit_distance("cat", "elephant", 2)
    (1, 3)
    """
    if abs(len(left_text) - len(right_text)) > max_distance:
        return max_distance + 1
    previous_row = list(range(len(right_text) + 1))
    for left_position, left_letter in enumerate(left_text, 1):
        current_row = [left_position]
        for right_position, right_letter in enumerate(right_text, 1):
            substitution_cost = previous_row[right_position - 1] + (left_letter != right_letter)
            current_row.append(
                min(previous_row[right_position] + 1, current_row[right_position - 1] + 1, substitution_cost)
            )
        if min(current_row) > max_distance:
            return max_distance + 1
        previous_row = current_row
    return previous_row[-1]
