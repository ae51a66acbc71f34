"""Random trees of schema files, their plain text, and noise between tokens."""

from collections.abc import Iterable
from functools import singledispatch
from typing import Any

from hypothesis import strategies as st

from omnigraph.lang import coarse_scan
from omnigraph.lang.schema import model as m
from omnigraph.values import PropertyType, ScalarType

# Words with a meaning elsewhere are names like any other.
NAMES = ("a", "b2", "_x", "node", "edge", "interface", "implements", "enum", "true", "src", "key")
TYPES = ("A", "B2", "Lamp", "Node", "Edge_1", "Vector", "String", "Enum")
WORDS = ("a", "close-friend", "3d", "B2B", "-", "--x", "1e5x", "0-9", "null")
NUMBERS = ("0", "7", "-7", "007", "4294967296")
DECIMALS = ("1.50", "-0.0", "1e3", "-2E+4", "0.1e-7")

Trees = st.SearchStrategy[Any]


def _tuples(items: Trees, least: int = 0, most: int = 3) -> Trees:
    return st.lists(items, min_size=least, max_size=most).map(tuple)


names: Trees = st.builds(m.Name, st.sampled_from(NAMES))
type_names: Trees = st.builds(m.Name, st.sampled_from(TYPES))
_characters = st.characters(exclude_categories=["Cs"], exclude_characters="\0")
texts = st.text(st.sampled_from('"\\\n\r\tn/*{') | _characters, max_size=8)
numbers: Trees = st.one_of(
    st.builds(m.Literal, st.just("int"), st.sampled_from(NUMBERS)),
    st.builds(m.Literal, st.just("float"), st.sampled_from(DECIMALS)),
)
literals: Trees = st.one_of(
    numbers,
    st.builds(m.Literal, st.just("string"), texts),
    st.builds(m.Literal, st.just("bool"), st.sampled_from(["true", "false"])),
    st.builds(m.Literal, st.just("word"), st.sampled_from(WORDS)),
    st.builds(m.Literal, st.just("code"), st.sampled_from(["OG-ED-201", "OG-"])),
)
options: Trees = st.lists(
    st.builds(m.Option, st.builds(m.Name, st.sampled_from(["k", "model", "_m"])), literals),
    max_size=2,
    unique_by=lambda option: option.name.text,
).map(tuple)


def _notes(bare: tuple[str, ...], free: tuple[str, ...]) -> Trees:
    """Annotations; those called `bare` take no arguments where they stand."""
    full = st.builds(m.Annotation, st.builds(m.Name, st.sampled_from(free)), _tuples(literals, most=2), options)
    return full | st.builds(m.Annotation, st.builds(m.Name, st.sampled_from(bare)))


# Behind a property `@key(..)` is a constraint, behind a target type `@card(..)` a cardinality.
property_notes = _notes(("index", "key", "unique", "card"), ("x", "description", "_y"))
node_notes = _notes(("x",), ("x", "key", "index", "card", "description"))
edge_notes = _notes(("card",), ("x", "key", "description"))

_scalars = st.sampled_from([s for s in ScalarType if s is not ScalarType.VECTOR])
_listed = st.sampled_from([s for s in ScalarType if s not in (ScalarType.VECTOR, ScalarType.BLOB)])
_values = st.lists(st.sampled_from([*WORDS, *NUMBERS]), min_size=1, max_size=3, unique=True)
types: Trees = st.one_of(
    st.builds(PropertyType, _scalars, st.booleans()),
    st.builds(PropertyType, _listed, st.booleans(), st.just(True)),
    st.builds(PropertyType, st.just(ScalarType.STRING), st.booleans(), enum_values=_values.map(tuple)),
    st.builds(PropertyType, st.just(ScalarType.VECTOR), st.booleans(), vector_dim=st.integers(1, 2**31 - 1)),
)
properties: Trees = st.builds(m.Property, names, types, _tuples(property_notes, most=2))
bounds: Trees = st.one_of(st.builds(m.Bounds, numbers, st.none() | numbers), st.builds(m.Bounds, st.none(), numbers))
constraints: Trees = st.builds(
    m.Constraint,
    st.sampled_from(["key", "unique", "index", "range", "check"]),
    _tuples(literals | bounds, least=1),
    options,
)
members: Trees = _tuples(properties | constraints, most=4)
cardinalities: Trees = st.builds(m.Cardinality, st.just(0), st.none() | st.sampled_from([0, 1, 2**32 - 1])) | st.builds(
    m.Cardinality, st.integers(1, 9), st.none() | st.integers(9, 99)
)
declarations: Trees = st.one_of(
    st.builds(
        m.InterfaceDeclaration,
        type_names,
        _tuples(properties),
        _tuples(st.builds(m.Annotation, st.just(m.Name("allow")), _tuples(literals, most=2), options), most=1),
    ),
    st.builds(m.NodeDeclaration, type_names, _tuples(node_notes, most=2), _tuples(type_names), members),
    st.builds(
        m.EdgeDeclaration,
        type_names,
        type_names,
        type_names,
        st.none() | cardinalities,
        _tuples(edge_notes, most=2),
        members,
    ),
)
files: Trees = st.builds(m.SchemaFile, _tuples(declarations, most=4))

# Spelling ---------------------------------------------------------------------------------------


def arguments(one: m.Annotation | m.Constraint) -> tuple[Any, ...]:
    return (*one.arguments, *one.options)


# A line end may stand in a string as it is.
_ESCAPES = {"\\": "\\\\", '"': '\\"', "\t": "\\t", "\r": "\\r"}


@singledispatch
def spell(node: Any) -> str:
    """The plainest text of a tree: all on one line, a space between all tokens that need one."""
    assert node is None
    return ""


@spell.register
def _(node: m.SchemaFile) -> str:
    return _each(node.declarations)


@spell.register
def _(node: m.InterfaceDeclaration) -> str:
    head = f"interface {node.name.text} {_each(node.annotations)}"
    return f"{head} {{ {_each(node.properties)} }}"


@spell.register
def _(node: m.NodeDeclaration) -> str:
    head = f"node {node.name.text} {_each(node.annotations)}"
    if node.implements:
        head += f" implements {', '.join(one.text for one in node.implements)}"
    return f"{head} {{ {_each(node.members)} }}"


@spell.register
def _(node: m.EdgeDeclaration) -> str:
    head = f"edge {node.name.text}: {node.source.text} -> {node.target.text}"
    notes = f"{spell(node.cardinality)} {_each(node.annotations)}"
    return f"{head} {notes} {{ {_each(node.members)} }}"


@spell.register
def _(node: m.Property) -> str:
    return f"{node.name.text}: {node.type.display()} {_each(node.annotations)}"


@spell.register
def _(node: m.Constraint) -> str:
    return f"@{node.kind}({', '.join(map(spell, arguments(node)))})"


@spell.register
def _(node: m.Annotation) -> str:
    given = ", ".join(map(spell, arguments(node)))
    return f"@{node.name.text}({given})" if given else f"@{node.name.text}"


@spell.register
def _(node: m.Cardinality) -> str:
    return f"@card({node.low}..{'' if node.high is None else node.high})"


@spell.register
def _(node: m.Bounds) -> str:
    return f"{spell(node.low)}..{spell(node.high)}"


@spell.register
def _(node: m.Option) -> str:
    return f"{node.name.text}={spell(node.value)}"


@spell.register
def _(node: m.Literal) -> str:
    if node.kind != "string":
        return node.text
    return f'"{"".join(_ESCAPES.get(char, char) for char in node.text)}"'


def _each(nodes: Iterable[Any]) -> str:
    return " ".join(map(spell, nodes))


# Noise ------------------------------------------------------------------------------------------

_GAPS = ("\n", "\n\n\n", "\t", "\r\n", "  ")
_COMMENTS = ("// a\n", '// "x\n', "// /* \r\n", "/* b */", "/**/", "/* node X {\n } */", "//\n")
gaps = st.sampled_from([*_GAPS, *_COMMENTS])


@st.composite
def noisy(draw: st.DrawFn, text: str) -> str:
    """The text with white space and comments where its tokens end."""
    pieces = [x for x in coarse_scan.lexemes(text, 0, len(text)) if x.kind != "comment"]
    edges = [x.end for x in pieces if _apart(text, x.end)]
    chosen = draw(st.lists(st.sampled_from(edges), max_size=6, unique=True)) if edges else []
    out, at = [draw(st.sampled_from(["", "// head\n", "\n\n/* top */"]))], 0
    for edge in sorted(chosen):
        out += [text[at:edge], draw(gaps), draw(st.sampled_from(["", " ", "\n"]))]
        at = edge
    return "".join([*out, text[at:], draw(st.sampled_from(["", "\n", " // end", "/* x */ // y"]))])


def _apart(text: str, at: int) -> bool:
    """Whether a place lies between two tokens: the coarse scanner knows no numbers, no `..`."""
    around = text[max(0, at - 1) : at + 1]
    return around[-1:].isspace() or around[:1] in "{}(),:" or around[-1:] in "{}(),:"


def comments(text: str) -> list[str]:
    """Every comment of a text."""
    return [text[one.start : one.end].rstrip() for one in coarse_scan.find_comments(text)]
