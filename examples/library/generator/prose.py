"""Compose titles and abstracts from the vocabulary.

The functions call only the `random()` method of the random source that they receive, because
Python guarantees that its sequence never changes.
"""

from collections.abc import Sequence
from random import Random
from typing import TypeVar

from .words import Topic

T = TypeVar("T")

TITLES = (
    "{method} for {thing}",
    "{thing} in {setting}",
    "{method} improves the {measure} of {thing}",
    "revisiting {method} for {thing} in {setting}",
    "a survey of {thing}",
    "towards reliable {thing}: {method} in {setting}",
    "how {thing} shape {measure}: evidence from {setting}",
    "does {method} help {thing}?",
    "{thing} and {thing2}: a comparative study",
    "predicting the {measure} of {thing} with {method}",
)
PROBLEMS = (
    "{thing} are central to {topic}, yet their {measure} in {setting} is poorly understood.",
    "Progress in {topic} depends on {thing}, whose {measure} varies widely in {setting}.",
    "It is an open question in {topic} how {thing} and {thing2} interact.",
    "Most work on {thing} neglects {setting}, where {measure} matters most.",
)
APPROACHES = (
    "We study {method} for {thing} and compare it with {method2}.",
    "This paper introduces a form of {method} that builds on {method2}.",
    "We combine {method} with {method2} and analyse {thing} step by step.",
    "Using {method}, we follow {thing} over {years} years.",
)
RESULTS = (
    "Across {count} cases {method} improves {measure} by {percent} per cent.",
    "In {count} trials the gain in {measure} is {percent} per cent over {method2}.",
    "We find no gain in {measure} beyond {percent} per cent in a sample of {count}.",
)
OUTLOOKS = (
    "The effect is strongest in {setting} and holds when {thing2} are taken into account.",
    "The data and the code are available for reuse.",
    "These results suggest a simple rule for practice in {setting}.",
    "Limits of the approach for {thing2} are discussed.",
)
BRIDGES = (
    "The findings carry over to {thing}, a long-standing concern of {topic}.",
    "A second part applies the idea to {thing} from {topic}.",
)


def pick(rng: Random, choices: Sequence[T]) -> T:
    """Return one of the choices, which are all equally likely."""
    return choices[int(rng.random() * len(choices))]


def two(rng: Random, choices: Sequence[T]) -> tuple[T, T]:
    """Return two different choices in random order; there must be at least two choices."""
    first = int(rng.random() * len(choices))
    step = 1 + int(rng.random() * (len(choices) - 1))
    return choices[first], choices[(first + step) % len(choices)]


def sentence(rng: Random, patterns: Sequence[str], facts: dict[str, str]) -> str:
    """Fill in one of the patterns and capitalize the first letter."""
    text = pick(rng, patterns).format_map(facts)
    return text[0].upper() + text[1:]


def facts_about(rng: Random, subject: Topic) -> dict[str, str]:
    """Choose the words that a paper on this topic uses repeatedly."""
    thing, thing2 = two(rng, subject.things)
    method, method2 = two(rng, subject.methods)
    return {
        "topic": subject.name,
        "thing": thing,
        "thing2": thing2,
        "method": method,
        "method2": method2,
        "measure": pick(rng, subject.measures),
        "setting": pick(rng, subject.settings),
        "years": str(2 + int(rng.random() * 24)),
        "count": str(20 + int(rng.random() * rng.random() * 5000)),
        "percent": f"{1 + rng.random() * 40:.1f}",
    }


def compose(rng: Random, topics: Sequence[Topic]) -> tuple[str, str, list[str]]:
    """Return the title, abstract and keywords of a paper; the first topic is the main one."""
    facts = facts_about(rng, topics[0])
    title = sentence(rng, TITLES, facts)
    parts = [sentence(rng, patterns, facts) for patterns in (PROBLEMS, APPROACHES, RESULTS)]
    keywords = [topics[0].name, facts["thing"], facts["method"]]
    for other in topics[1:]:
        bridge = {"topic": other.name, "thing": pick(rng, other.things)}
        parts.append(sentence(rng, BRIDGES, bridge))
        keywords.append(bridge["thing"])
    parts.append(sentence(rng, OUTLOOKS, facts))
    return title, " ".join(parts), keywords
