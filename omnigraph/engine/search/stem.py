"""English stems by the rules of Snowball, from the library `snowballstemmer`.

Words come folded and in lower case. Stems are never stored: an index holds words as they appear in
texts, so other rules change what a search finds but make no index wrong.
"""

from functools import lru_cache

_CACHED_WORDS = 1 << 17  # more than most vocabularies have; about 30 MB when full


@lru_cache(maxsize=_CACHED_WORDS)
def stem(word: str) -> str:
    """Return the stem of an English word; a word with other characters than a-z is its own stem.

    >>> [stem(word) for word in ("searching", "databases", "happily", "relational", "hopping")]
    ['search', 'databas', 'happili', 'relat', 'hop']
    """
    if not (word.isascii() and word.isalpha()):
        return word
    # Not `snowballstemmer.stemmer`: that prefers PyStemmer where it is installed, whose version,
    # and so whose rules, may differ. Imported here because the package loads all its languages.
    from snowballstemmer.english_stemmer import EnglishStemmer

    # A stemmer holds the word it works on, so threads must not share one.
    stemmed: str = EnglishStemmer().stemWord(word)
    return stemmed


def stem_prefixes(stemmed: str) -> frozenset[str]:
    """Return how the words begin that have this stem.

    Only one rule changes the first two letters: `dying` becomes `die`.

    >>> sorted(stem_prefixes("search")), sorted(stem_prefixes("die"))
    (['se'], ['di', 'dy'])
    """
    prefixes = {stemmed[:2]}
    if len(stemmed) == 3 and stemmed.endswith("ie"):
        prefixes.add(stemmed[0] + "y")
    return frozenset(prefixes)
