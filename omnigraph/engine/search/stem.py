"""English stems: the Snowball "Porter2" rules, word by word.

Pure, and not stored anywhere: indexes hold words as they stand in texts. Words come folded and in
lower case.
"""

import re
from functools import lru_cache

_VOWELS = "aeiouy"
_EXCEPTIONS = {
    "skis": "ski",
    "skies": "sky",
    "dying": "die",
    "lying": "lie",
    "tying": "tie",
    "idly": "idl",
    "gently": "gentl",
    "ugly": "ugli",
    "early": "earli",
    "only": "onli",
    "singly": "singl",
} | {one: one for one in ("sky", "news", "howe", "atlas", "cosmos", "bias", "andes")}
_KEPT = {"inning", "outing", "canning", "herring", "earring", "proceed", "exceed", "succeed"}
_STEP_2 = (
    *(("ational", "ate"), ("tional", "tion"), ("enci", "ence"), ("anci", "ance")),
    *(("abli", "able"), ("entli", "ent"), ("ization", "ize"), ("izer", "ize"), ("ation", "ate")),
    *(("ator", "ate"), ("alism", "al"), ("aliti", "al"), ("alli", "al"), ("fulness", "ful")),
    *(("ousli", "ous"), ("ousness", "ous"), ("iveness", "ive"), ("iviti", "ive")),
    *(("biliti", "ble"), ("bli", "ble"), ("ogi", "og"), ("fulli", "ful"), ("lessli", "less")),
    ("li", ""),
)
_STEP_3 = (
    *(("ational", "ate"), ("tional", "tion"), ("alize", "al"), ("icate", "ic"), ("iciti", "ic")),
    *(("ical", "ic"), ("ful", ""), ("ness", ""), ("ative", "")),
)
_STEP_4 = (
    *("ement", "ance", "ence", "able", "ible", "ment", "ant", "ent", "ism", "ate", "iti", "ous"),
    *("ive", "ize", "ion", "al", "er", "ic"),
)
_SHORT = re.compile(r"^(?:[aeiouy][^aeiouy]|.*[^aeiouy][aeiouy][^aeiouywxY])$")
_REGION = re.compile(r"^.*?[aeiouy][^aeiouy]")


@lru_cache(maxsize=1 << 16)
def stem(word: str) -> str:
    """The stem of an English word.

    >>> [stem(word) for word in ("searching", "databases", "happily", "relational", "hopping")]
    ['search', 'databas', 'happili', 'relat', 'hop']
    """
    if len(word) < 3 or not word.isascii() or not word.isalpha():
        return word
    if word in _EXCEPTIONS:
        return _EXCEPTIONS[word]
    marked = re.sub(r"(?:^y|(?<=[aeiouy])y)", "Y", word)
    first, second = _regions(marked)
    found = _plural(marked)
    if found in _KEPT:
        return found
    found = _past(found, first)
    if len(found) > 2 and found[-1] in "yY" and found[-2] not in _VOWELS:
        found = found[:-1] + "i"
    found = _suffix(found, first, _STEP_2)
    found = _step_3(found, first, second)
    return _last(_step_4(found, second), first, second).lower()


def openings(stemmed: str) -> frozenset[str]:
    """How the words begin that have this stem: no rule touches the first two letters.

    >>> sorted(openings("search")), sorted(openings("die"))
    (['se'], ['di', 'dy'])
    """
    odd = (word for word, known in _EXCEPTIONS.items() if known == stemmed)
    return frozenset({stemmed[:2], *(one[:2] for one in odd)})


def _regions(word: str) -> tuple[int, int]:
    """Where the first and the second region begin."""
    first = next((len(p) for p in ("gener", "commun", "arsen") if word.startswith(p)), None)
    if first is None:
        found = _REGION.match(word)
        first = found.end() if found else len(word)
    rest = _REGION.match(word[first:])
    return first, first + rest.end() if rest else len(word)


def _plural(word: str) -> str:
    for ending, left in (("sses", 2), ("ied", 0), ("ies", 0), ("us", -1), ("ss", -1)):
        if word.endswith(ending):
            if left > 0:
                return word[:-left]
            return word if left else word[:-2] if len(word) > 4 else word[:-1]
    if word.endswith("s") and any(one in _VOWELS for one in word[:-2]):
        return word[:-1]
    return word


def _past(word: str, first: int) -> str:
    for ending in ("eedly", "eed"):
        if word.endswith(ending):
            return word[: -len(ending)] + "ee" if len(word) - len(ending) >= first else word
    for ending in ("ingly", "edly", "ing", "ed"):
        if word.endswith(ending):
            left = word[: -len(ending)]
            return _mended(left, first) if any(one in _VOWELS for one in left) else word
    return word


def _mended(word: str, first: int) -> str:
    if word.endswith(("at", "bl", "iz")):
        return word + "e"
    if word.endswith(("bb", "dd", "ff", "gg", "mm", "nn", "pp", "rr", "tt")):
        return word[:-1]
    return word + "e" if first >= len(word) and _SHORT.match(word) else word


def _suffix(word: str, first: int, endings: tuple[tuple[str, str], ...]) -> str:
    for ending, better in sorted(endings, key=lambda pair: -len(pair[0])):
        if not word.endswith(ending):
            continue
        left = word[: -len(ending)]
        fits = len(left) >= first
        if ending == "ogi":
            fits = fits and left.endswith("l")
        if ending == "li":
            fits = fits and left.endswith(tuple("cdeghkmnrt"))
        return left + better if fits else word
    return word


def _step_3(word: str, first: int, second: int) -> str:
    if word.endswith("ative") and len(word) - 5 < second:
        return word
    return _suffix(word, first, _STEP_3)


def _step_4(word: str, second: int) -> str:
    for ending in _STEP_4:
        if word.endswith(ending):
            left = word[: -len(ending)]
            fits = len(left) >= second and (ending != "ion" or left.endswith(("s", "t")))
            return left if fits else word
    return word


def _last(word: str, first: int, second: int) -> str:
    if word.endswith("e"):
        left = word[:-1]
        if len(left) >= second or (len(left) >= first and not _SHORT.match(left)):
            return left
    if word.endswith("ll") and len(word) - 1 >= second:
        return word[:-1]
    return word
