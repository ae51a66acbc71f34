"""Random schemas for property tests, with few names so that two of them often overlap."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

from hypothesis import strategies as st

from omnigraph.lang.schema.catalog import (
    Catalog,
    Check,
    Constraint,
    EdgeType,
    EmbeddingDefinition,
    Index,
    InterfaceType,
    Key,
    NodeType,
    PropertyDefinition,
    Range,
    StoredAnnotation,
    Unique,
)
from omnigraph.lang.schema.model import Literal
from omnigraph.values import PropertyType, ScalarType

Draw = Callable[[st.SearchStrategy[Any]], Any]
T = TypeVar("T", NodeType, EdgeType)

_PLAIN = [one for one in ScalarType if one is not ScalarType.VECTOR]
_LISTED = [one for one in _PLAIN if one is not ScalarType.BLOB]
_NAMES = ["a", "b", "c", "d"]
_DEFAULTS = {ScalarType.I32: "5", ScalarType.F64: "0.5", ScalarType.BOOL: "true"}

_cores = st.one_of(
    st.builds(PropertyType, st.sampled_from(_PLAIN)),
    st.builds(PropertyType, st.sampled_from([ScalarType.I32, ScalarType.I64, ScalarType.STRING])),
    st.builds(lambda s: PropertyType(s, is_list=True), st.sampled_from(_LISTED)),
    st.builds(lambda n: PropertyType(ScalarType.VECTOR, vector_dim=n), st.sampled_from([2, 3])),
    st.builds(
        lambda v: PropertyType(ScalarType.STRING, enum_values=tuple(v)),
        st.sets(st.sampled_from(["x", "y", "z"]), min_size=1),
    ),
)
types = st.builds(lambda core, nullable: core.as_nullable(nullable), _cores, st.booleans())
notes = st.lists(
    st.sampled_from(
        [
            StoredAnnotation("description", "one"),
            StoredAnnotation("description", "two"),
            StoredAnnotation("color", "red"),
        ]
    ),
    max_size=1,
).map(tuple)


def _is_comparable(one: PropertyDefinition) -> bool:
    kind = one.type
    return not (kind.is_list or kind.is_vector or kind.scalar is ScalarType.BLOB)


def _marks(one: PropertyDefinition) -> list[str]:
    if not _is_comparable(one):
        return ["index"] if one.type.is_vector else []
    return ["index", "unique"]


@st.composite
def properties(draw: Draw, name: str) -> PropertyDefinition:
    """One property with the annotations that its type allows."""
    one = PropertyDefinition(name, draw(types), draw(notes))
    marks = draw(st.sets(st.sampled_from(_marks(one)))) if _marks(one) else ()
    text = _DEFAULTS.get(one.type.scalar)
    has_default = text is not None and not one.type.is_list and draw(st.booleans())
    default = Literal("string", text) if has_default and text is not None else None
    return replace(one, inline_constraints=tuple(sorted(marks)), default=default)


@st.composite
def _own(draw: Draw) -> dict[str, PropertyDefinition]:
    names = draw(st.sets(st.sampled_from(_NAMES), max_size=4))
    return {name: draw(properties(name)) for name in sorted(names)}


@st.composite
def _constraints(draw: Draw, own: list[PropertyDefinition], kind: str) -> tuple[Constraint, ...]:
    made: list[Constraint] = []
    for one in own:
        made += [Index((one.name,)) for mark in one.inline_constraints if mark == "index"]
        made += [Unique((one.name,)) for mark in one.inline_constraints if mark == "unique"]
    columns = [one.name for one in own if _is_comparable(one)]
    columns += ["src", "dst"] if kind == "edge" else []
    for word in (Unique, Index):
        if columns and draw(st.integers(0, 3)) == 0:
            chosen = draw(st.sets(st.sampled_from(columns), min_size=1, max_size=2))
            made.append(word(tuple(sorted(chosen))))
    if columns and draw(st.integers(0, 5)) == 0:
        made.append(Index((columns[0],), (("kind", draw(st.sampled_from(["btree", "bitmap"]))),)))
    keyable = [one.name for one in own if _is_comparable(one) and not one.type.nullable]
    keyable += ["src", "dst"] if kind == "edge" else []
    if keyable and draw(st.integers(0, 3)) == 0:
        chosen = draw(st.sets(st.sampled_from(keyable), min_size=1, max_size=2))
        made.append(Key(tuple(sorted(chosen))))
    if kind == "node":
        made += draw(_node_constraints(own))
    return tuple(made)


@st.composite
def _node_constraints(draw: Draw, own: list[PropertyDefinition]) -> list[Constraint]:
    made: list[Constraint] = []
    for one in own:
        if one.type.is_numeric and draw(st.integers(0, 2)) == 0:
            made.append(Range(one.name, draw(st.sampled_from([None, 0, 0.5])), 9))
        is_text = one.type.scalar is ScalarType.STRING and not one.type.is_list
        if is_text and draw(st.integers(0, 3)) == 0:
            made.append(Check(one.name, draw(st.sampled_from(["^x", "y$"]))))
    return made


@st.composite
def _embedded(draw: Draw, own: dict[str, PropertyDefinition]) -> dict[str, PropertyDefinition]:
    texts = [one.name for one in own.values() if one.type.scalar is ScalarType.STRING and not one.type.is_list]
    for name, one in own.items():
        if one.type.is_vector and texts and one.declared_directly and draw(st.booleans()):
            source = draw(st.sampled_from(texts))
            embed = EmbeddingDefinition(source, draw(st.sampled_from([None, "m1", "m2"])))
            own = own | {name: replace(one, embed=embed)}
    return own


@st.composite
def _nodes(draw: Draw, name: str, interfaces: tuple[InterfaceType, ...]) -> NodeType:
    own: dict[str, PropertyDefinition] = draw(_own())
    chosen = [one for one in interfaces if draw(st.booleans())][:1]
    for interface in chosen:
        for offered in interface.properties:
            pair = ((interface.name, offered.name),)
            held = own.get(offered.name)
            if held is not None and held.type == offered.type:
                own[offered.name] = replace(held, satisfies=pair)
            else:
                own[offered.name] = replace(offered, declared_directly=False, satisfies=pair)
    own = draw(_embedded(own))
    held_all = [own[name] for name in sorted(own)]
    return NodeType(
        name, tuple(held_all), draw(_constraints(held_all, "node")), tuple(one.name for one in chosen), draw(notes)
    )


@st.composite
def _edges(draw: Draw, name: str, nodes: list[str]) -> EdgeType:
    own = list(draw(_own()).values())
    low = draw(st.integers(0, 1))
    return EdgeType(
        name,
        draw(st.sampled_from(nodes)),
        draw(st.sampled_from(nodes)),
        tuple(own),
        draw(_constraints(own, "edge")),
        low,
        draw(st.sampled_from([None, 1, 2])),
        draw(notes),
    )


@st.composite
def catalogs(draw: Draw) -> Catalog:
    """A whole schema that the checker would accept."""
    names = sorted(draw(st.sets(st.sampled_from(["I", "J"]))))
    interfaces = tuple(InterfaceType(name, tuple(draw(_own()).values())) for name in names)
    nodes = sorted(draw(st.sets(st.sampled_from(["A", "B", "C"]))))
    edges = sorted(draw(st.sets(st.sampled_from(["E", "F"])))) if nodes else []
    return Catalog(
        interfaces,
        tuple(draw(_nodes(name, interfaces)) for name in nodes),
        tuple(draw(_edges(name, nodes)) for name in edges),
    )


@st.composite
def neighbors(draw: Draw) -> tuple[Catalog, Catalog]:
    """Two schemas of which the second grew out of the first, or has little to do with it."""
    before: Catalog = draw(catalogs())
    strangers = draw(st.integers(0, 3)) == 0
    return before, draw(_hinted(before)) if strangers else draw(evolved(before))


@st.composite
def _hinted(draw: Draw, before: Catalog) -> Catalog:
    """Another schema, with rename hints where names came and went."""
    after: Catalog = draw(catalogs())
    gone = {
        kind: sorted({o.name for o in old} - {n.name for n in new})
        for kind, old, new in (("node", before.nodes, after.nodes), ("edge", before.edges, after.edges))
    }
    nodes = [_adopting(draw, one, before.node(one.name), gone["node"]) for one in after.nodes]
    edges = [_adopting(draw, one, before.edge(one.name), gone["edge"]) for one in after.edges]
    return replace(after, nodes=tuple(nodes), edges=tuple(edges))


def _adopting(draw: Draw, one: T, old: T | None, gone: list[str]) -> T:
    if old is None and gone and draw(st.booleans()):
        return replace(one, rename_from=gone.pop())
    return one


@st.composite
def evolved(draw: Draw, before: Catalog) -> Catalog:
    """The schema some edits later; most of them can be migrated to."""
    nodes = [draw(_evolved_type(one)) for one in before.nodes]
    names = {one.rename_from or one.name: one.name for one in nodes}
    edges = [
        replace(
            draw(_evolved_type(one)),
            source=names[one.source],
            target=names[one.target],
            min_cardinality=draw(st.sampled_from([one.min_cardinality, 0])),
            max_cardinality=draw(st.sampled_from([one.max_cardinality, 2, None])),
        )
        for one in before.edges
    ]
    left = [e for e in edges if draw(st.integers(0, 4))]
    ends = {name for edge in left for name in (edge.source, edge.target)}
    kept = [n for n in nodes if n.name in ends or draw(st.integers(0, 4))]
    return Catalog(before.interfaces, tuple(kept), tuple(left))


@st.composite
def _evolved_type(draw: Draw, one: T) -> T:
    made = [draw(_evolved_property(p)) for p in one.properties]
    used = {p.embed.source for p in one.properties if p.embed is not None}
    keys = {name for c in one.constraints if isinstance(c, Key) for name in c.columns}
    fixed = used | keys | {p.name for p in one.properties if p.satisfies}
    kept = [p for p in made if (p.rename_from or p.name) in fixed or draw(st.integers(0, 4))]
    names = {p.rename_from or p.name: p.name for p in kept}
    kept = [_follow(p, names) for p in kept]
    if draw(st.integers(0, 2)) == 0:
        new = draw(properties("n"))
        kept.append(replace(new, type=new.type.as_nullable(True), inline_constraints=()))
    moved = [_moved(c, names) for c in one.constraints]
    held: list[Constraint] = [c for c in moved if c is not None and (isinstance(c, Key) or draw(st.integers(0, 4)))]
    fresh: tuple[Constraint, ...] = draw(_constraints([replace(p, inline_constraints=()) for p in kept], one.kind))
    fresh = tuple(c for c in fresh if not isinstance(c, Key))
    renamed = draw(st.integers(0, 4)) == 0
    return replace(
        one,
        name=f"{one.name}2" if renamed else one.name,
        rename_from=one.name if renamed else None,
        properties=tuple(sorted(kept, key=lambda p: p.name)),
        constraints=(*held, *fresh[: draw(st.integers(0, 2))]),
        annotations=draw(_other_text(one.annotations)),
    )


def _follow(one: PropertyDefinition, names: dict[str, str]) -> PropertyDefinition:
    if one.embed is None:
        return one
    return replace(one, embed=replace(one.embed, source=names[one.embed.source]))


def _moved(one: Constraint, names: dict[str, str]) -> Constraint | None:
    """A constraint in the new names of its columns; None when a column is gone."""
    names = names | {"src": "src", "dst": "dst"}
    if isinstance(one, Range | Check):
        return replace(one, column=names[one.column]) if one.column in names else None
    if not set(one.columns) <= names.keys():
        return None
    return replace(one, columns=tuple(sorted(names[name] for name in one.columns)))


@st.composite
def _other_text(draw: Draw, old: tuple[StoredAnnotation, ...]) -> tuple[StoredAnnotation, ...]:
    if any(one.name != "description" for one in old):
        return old
    return tuple(draw(st.sampled_from([old, (StoredAnnotation("description", "new"),)])))


_WIDER = {ScalarType.I32: ScalarType.I64, ScalarType.U32: ScalarType.U64}


@st.composite
def _evolved_property(draw: Draw, one: PropertyDefinition) -> PropertyDefinition:
    if one.satisfies:
        return one
    kind = one.type
    if draw(st.booleans()):
        kind = replace(kind, scalar=_WIDER.get(kind.scalar, kind.scalar))
    if draw(st.booleans()) and "key" not in one.inline_constraints:
        kind = kind.as_nullable(draw(st.booleans()))
    if kind.enum_values is not None:
        values = draw(st.sets(st.sampled_from(["v", "w", "x", "y"]), min_size=1))
        kind = replace(kind, enum_values=tuple(values))
    renamed = draw(st.integers(0, 3)) == 0
    return replace(
        one,
        name=f"{one.name}2" if renamed else one.name,
        rename_from=one.name if renamed else None,
        type=kind,
        annotations=draw(_other_text(one.annotations)),
        default=draw(st.sampled_from([one.default, None])),
    )
