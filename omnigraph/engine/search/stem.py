"""English word stems, computed with the Snowball rules from the `snowballstemmer` library.

Words must already be folded to lower case. Stems are never stored, because an index contains words as they appear in
the stored strings. A change in the rules would therefore change search results but would not invalidate an index.
"""

from functools import lru_cache

_CACHED_WORDS = 1 << 17  # number of cached stems, more than most vocabularies need; a full cache takes about 30 MB


@lru_cache(maxsize=_CACHED_WORDS)
def stem(word: str) -> str:
    """Return the stem of an English word. A word with characters other than a-z is returned unchanged.

    >>> [stem(word) for word in ("searching", "databases", "happily", "relational", "hopping")]
    ['search', 'databas', 'happili', 'relat', 'hop']
    """
    if not (word.isascii() and word.isalpha()):
        return word
    # Do not call `snowballstemmer.stemmer`: it uses PyStemmer if that is installed, and PyStemmer's rules differ
    # between versions. Import the package lazily, because it loads all of its languages.
    from snowballstemmer.english_stemmer import EnglishStemmer

    # A stemmer stores the word that it is processing, so threads must not share one.
    stemmed: str = EnglishStemmer().stemWord(word)
    return stemmed


def stem_prefixes(stemmed: str) -> frozenset[str]:
    """Return the two-letter prefixes that words with the given stem can have.

    Only one rule changes the first two letters, for example when `dying` becomes `die`.

    >>> sorted(stem_prefixes("search")), sorted(stem_prefixes("die"))
    (['se'], ['di', 'dy'])
    """
    prefixes = {stemmed[:2]}
    if len(stemmed) == 3 and stemmed.endswith("ie"):
        prefixes.add(stemmed[0] + "y")
    return frozenset(prefixes)
