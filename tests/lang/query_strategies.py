"""Random query trees that the parser could have produced.

`queries()` and `query_files()` are the usual entrances; `Speller().query(tree)` turns a tree into
text. Trees keep the flat form of conditions and use keywords as names wherever that is allowed.
"""

import functools
from typing import Any

from hypothesis import strategies as st

from omnigraph.lang.query import model as m
from omnigraph.values import PropertyType, ScalarType

KEYWORDS = tuple(
    "query match return having union all order limit offset distinct as asc desc not optional and or in is null"
    " true false contains starts_with insert upsert patch update delete set where now search fuzzy match_text"
    " bm25 nearest rrf count sum avg min max collect date datetime case when then else end lower matches"
    " any all shortest walk trail acyclic simple by length nodes edges cost".split()
)
PLAIN = ("a", "b", "name", "knows", "not_x", "query1", "_x", "inward", "true2", "nullable")
TYPES = ("A", "Person", "Date", "String", "Vector", "Not", "Q_1")
PAIRING = ("contains", "starts_with", "in")

Strategy = st.SearchStrategy[Any]
texts = st.text(st.characters(exclude_categories=("Cs", "Cn"), exclude_characters="\0"), max_size=8)


def _brief(strategy: Strategy) -> Strategy:
    """The same strategy under a short name: hypothesis refuses to print the long ones."""

    @st.composite
    def drawn(draw: st.DrawFn) -> Any:
        return draw(strategy)

    return drawn()


def words(*without: str) -> st.SearchStrategy[str]:
    """Names, many of which are keywords elsewhere."""
    return _brief(st.sampled_from([w for w in (*PLAIN, *KEYWORDS) if w not in without]))


def names(*without: str) -> Strategy:
    """Names as nodes."""
    return st.builds(m.Name, words(*without))


variables: Strategy = st.builds(m.Variable, words())
type_names: Strategy = st.builds(m.Name, st.sampled_from(TYPES))
fields: Strategy = st.builds(m.Field, words(), words())

# Expressions ------------------------------------------------------------------------------------

floats = st.floats(allow_nan=False, allow_infinity=False).map(repr)
literals: Strategy = _brief(
    st.one_of(
        st.builds(m.Literal, st.just("string"), texts),
        st.builds(m.Literal, st.just("int"), st.integers(-(2**63), 2**63 - 1).map(str)),
        st.builds(m.Literal, st.just("float"), floats),
        st.builds(m.Literal, st.just("bool"), st.sampled_from(["true", "false"])),
        st.builds(m.Literal, st.sampled_from(["date", "datetime"]), texts),
    )
)
null = st.just(m.Literal("null", "null"))
lists: Strategy = st.builds(m.ListLiteral, st.lists(literals | null, max_size=3).map(tuple))
now = st.just(m.Now())
values: Strategy = _brief(st.one_of(variables, literals, null, lists, now))
aliases: Strategy = st.builds(m.Alias, words("true", "false"))


def _calls(arguments: Strategy) -> Strategy:
    two = st.tuples(arguments, arguments)
    more = st.tuples(arguments, arguments, arguments)
    return st.one_of(
        st.builds(m.Call, st.sampled_from(["search", "match_text", "bm25", "fuzzy"]), two),
        st.builds(m.Call, st.just("fuzzy"), more),
        rankings(arguments),
        st.builds(m.Call, st.just("rrf"), st.tuples(rankings(arguments), rankings(arguments))),
        st.builds(
            m.Aggregate, st.sampled_from(["count", "sum", "avg", "min", "max", "collect"]), arguments, st.booleans()
        ),
        st.just(m.Aggregate("count", m.AllRows())),
    )


def rankings(arguments: Strategy) -> Strategy:
    """`nearest(..)` and `bm25(..)`."""
    nearest = st.builds(m.Call, st.just("nearest"), st.tuples(fields, arguments))
    return nearest | st.builds(m.Call, st.just("bm25"), st.tuples(arguments, arguments))


def _chain(operands: list[Any], operators: list[str]) -> Any:
    """A chain that does not begin with a chain of the same precedence."""
    first = operands[0]
    node = m.Arithmetic(tuple(operands), tuple(operators[: len(operands) - 1]))  # type: ignore[arg-type]
    if isinstance(first, m.Arithmetic) and first.is_additive == node.is_additive:
        return m.Arithmetic((*first.operands, *operands[1:]), (*first.operators, *node.operators))
    return node


def _signable(node: Any) -> bool:
    """The negative of a positive number is a literal instead."""
    return not isinstance(node, m.Literal) or node.kind not in ("int", "float") or node.text.startswith("-")


def _scalar_nodes(inner: Strategy) -> Strategy:
    """Arithmetic, calls and `case` over operands that are never null, an alias or a search."""
    results = inner | null
    branches = st.builds(m.CaseBranch, st.deferred(lambda: conditions), results)
    several = st.lists(inner, min_size=2, max_size=3)
    return st.one_of(
        st.builds(_chain, several, st.lists(st.sampled_from("+-"), min_size=2, max_size=2)),
        st.builds(_chain, several, st.lists(st.sampled_from("*/%"), min_size=2, max_size=2)),
        st.builds(m.Negative, inner.filter(_signable)),
        st.builds(m.ScalarCall, st.sampled_from(FUNCTIONS), st.lists(results, max_size=3).map(tuple)),
        st.builds(m.Case, st.lists(branches, min_size=1, max_size=2).map(tuple), st.none() | results),
    )


PATH_FUNCTIONS = ("length", "nodes", "edges", "cost")
FUNCTIONS = ("lower", "coalesce", "matches", "year", "not_x", "query1", "_x", "sum2", *PATH_FUNCTIONS)
_factors: Strategy = st.one_of(variables, fields, literals, lists, now)
_inner_scalars: Strategy = st.recursive(_factors, _scalar_nodes, max_leaves=4)
scalars: Strategy = _brief(_scalar_nodes(_inner_scalars))

path_calls: Strategy = st.builds(m.ScalarCall, st.sampled_from(PATH_FUNCTIONS), st.tuples(variables))
_simple: Strategy = st.one_of(variables, fields, literals, lists, now, path_calls, aliases)
expressions: Strategy = _brief(_simple | scalars | _calls(_simple | scalars | _calls(_simple)))
text_calls: Strategy = st.builds(
    m.Call, st.sampled_from(["search", "match_text", "fuzzy"]), st.tuples(_simple, _simple)
)
operands: Strategy = _brief(st.one_of(variables, fields, literals, null, lists, now, scalars, _calls(_simple)))

# Conditions -------------------------------------------------------------------------------------

COMPARISONS = ("=", "!=", "<", "<=", ">", ">=")
atoms: Strategy = _brief(
    st.one_of(
        st.builds(m.Comparison, operands, st.sampled_from([*COMPARISONS, "contains", "starts_with"]), operands),
        st.builds(m.Membership, operands, lists | variables),
        st.builds(m.IsNull, operands, st.booleans()),
        st.builds(m.TextMatch, text_calls),
        st.builds(m.Truth, scalars),
    )
)
_properties: Strategy = st.builds(m.Alias, words("not"))
row_words: Strategy = st.builds(m.Alias, words("not", "null", "true", "false"))
_row_factors: Strategy = st.one_of(row_words, variables, literals.filter(lambda one: one.kind != "bool"), now)
_row_operands: Strategy = st.lists(_row_factors, min_size=2, max_size=3)
row_scalars: Strategy = _brief(
    st.one_of(
        st.builds(_chain, _row_operands, st.lists(st.sampled_from("+-"), min_size=2, max_size=2)),
        st.builds(_chain, _row_operands, st.lists(st.sampled_from("*/%"), min_size=2, max_size=2)),
        st.builds(m.Negative, _row_factors.filter(_signable)),
        st.builds(m.ScalarCall, st.sampled_from(FUNCTIONS), st.lists(_row_factors, max_size=3).map(tuple)),
    )
)
row_atoms: Strategy = _brief(
    st.one_of(
        st.builds(m.Comparison, st.builds(m.Alias, words()), st.sampled_from(COMPARISONS), values),
        st.builds(m.Comparison, row_scalars, st.sampled_from([*COMPARISONS, "contains", "starts_with"]), row_scalars),
        st.builds(m.Membership, _properties, lists | variables),
        st.builds(m.IsNull, _properties | row_scalars, st.booleans()),
        st.builds(m.Truth, row_scalars.filter(lambda one: isinstance(one, m.ScalarCall))),
    )
)


def flat(kind: type[m.And] | type[m.Or], items: list[Any]) -> Any:
    """A combination without combinations of the same kind directly in it."""
    spread = [x for item in items for x in (item.items if isinstance(item, kind) else [item])]
    return kind(tuple(spread))


def combined(leaves: Strategy) -> Strategy:
    """Conditions over the given atoms."""

    def grow(inner: Strategy) -> Strategy:
        several = st.lists(inner, min_size=2, max_size=3)
        return st.one_of(
            st.builds(m.Not, inner),
            several.map(functools.partial(flat, m.And)),
            several.map(functools.partial(flat, m.Or)),
        )

    return st.recursive(leaves, grow, max_leaves=6)


_columns: Strategy = st.builds(m.Alias, words("not", "null", "true", "false"))
_group_values: Strategy = operands | _columns
group_atoms: Strategy = _brief(
    st.one_of(
        st.builds(
            m.Comparison, _group_values, st.sampled_from([*COMPARISONS, "contains", "starts_with"]), _group_values
        ),
        st.builds(m.Membership, _group_values, lists | variables),
        st.builds(m.IsNull, _group_values, st.booleans()),
        st.builds(m.Truth, scalars),
    )
)
conditions: Strategy = _brief(combined(atoms))
group_conditions: Strategy = _brief(combined(group_atoms))
row_conditions: Strategy = _brief(combined(row_atoms))

# Clauses ----------------------------------------------------------------------------------------

bindings: Strategy = _brief(
    st.builds(
        m.Binding, variables, type_names, st.lists(st.builds(m.InlinePredicate, names(), values), max_size=3).map(tuple)
    )
)
hops: Strategy = st.builds(m.Hops, st.integers(0, 9), st.none() | st.integers(0, 9))


def _alternatives(*without: str) -> Strategy:
    """Edge words of which the first is none of `without`."""
    first = st.tuples(names("not", *without))
    more = st.lists(names("not"), max_size=2).map(tuple)
    return st.tuples(first, more).map(lambda both: both[0] + both[1])


PATH_MODES = ("any shortest", "all shortest", "walk", "trail", "acyclic", "simple")
path_patterns: Strategy = st.builds(m.PathPattern, variables, st.sampled_from(PATH_MODES), st.none() | fields)
traversals: Strategy = _brief(
    st.one_of(
        st.builds(m.Traversal, variables, _alternatives(*PAIRING), variables, st.just(False)),
        st.builds(m.Traversal, variables, _alternatives(), variables, st.just(False), hops),
        st.builds(m.Traversal, variables, _alternatives(), variables, st.just(True), hops | st.none()),
        st.builds(m.Traversal, variables, _alternatives(), variables, st.booleans(), hops | st.none(), variables),
        st.builds(m.Traversal, variables, _alternatives(), variables, st.booleans(), hops, variables, conditions),
        st.builds(
            m.Traversal,
            variables,
            _alternatives(),
            variables,
            st.booleans(),
            hops,
            st.none() | variables,
            st.none() | conditions,
            path_patterns,
        ),
    )
)
pairs: Strategy = st.builds(m.WordPair, variables, st.builds(m.Name, st.sampled_from(PAIRING)), variables)
plain_clauses: Strategy = _brief(
    st.one_of(bindings, traversals, pairs, st.builds(m.Filter, conditions), st.builds(m.Filter, atoms))
)


def _blocks(inner: Strategy) -> Strategy:
    several = st.lists(inner, min_size=1, max_size=3).map(tuple)
    return st.builds(m.Negation, several) | st.builds(m.OptionalMatch, several)


clauses: Strategy = _brief(st.recursive(plain_clauses, _blocks, max_leaves=4))

# Queries ----------------------------------------------------------------------------------------

projections: Strategy = st.builds(m.Projection, expressions, st.none() | names())


def _is_nearest(node: Any) -> bool:
    return isinstance(node, m.Call) and node.function == "nearest"


orderings: Strategy = st.builds(m.Ordering, expressions) | st.builds(
    m.Ordering, expressions.filter(lambda e: not _is_nearest(e)), st.sampled_from(["asc", "desc"])
)
amounts: Strategy = st.none() | variables
amounts |= st.builds(m.Literal, st.just("int"), st.integers(0, 10**6).map(str))
_clause_lists: Strategy = st.lists(clauses, min_size=1, max_size=4).map(tuple)
_column_lists: Strategy = st.lists(projections, min_size=1, max_size=4).map(tuple)
_order_lists: Strategy = st.lists(orderings, max_size=3).map(tuple)
_having: Strategy = st.none() | group_conditions
single_reads: Strategy = _brief(
    st.builds(m.ReadBody, _clause_lists, _column_lists, _order_lists, amounts, amounts, st.booleans(), having=_having)
)
_parts: Strategy = st.builds(m.ReadBody, _clause_lists, _column_lists, distinct=st.booleans(), having=_having)
unions: Strategy = _brief(
    st.builds(
        m.UnionBody,
        st.lists(_parts, min_size=2, max_size=3).map(tuple),
        st.booleans(),
        _order_lists,
        amounts,
        amounts,
    )
)
reads: Strategy = _brief(st.one_of(single_reads, single_reads, unions))
_assigned: Strategy = st.lists(st.builds(m.Assignment, names(), values | scalars), min_size=1, max_size=4)
_row_assigned: Strategy = st.lists(
    st.builds(m.Assignment, names(), values | row_words | row_scalars), min_size=1, max_size=4
)
statements: Strategy = st.one_of(
    st.builds(m.Insert, type_names, _assigned.map(tuple)),
    st.builds(m.Upsert, type_names, _assigned.map(tuple)),
    st.builds(m.Patch, type_names, _assigned.map(tuple)),
    st.builds(m.Update, type_names, _row_assigned.map(tuple), row_conditions),
    st.builds(m.Delete, type_names, row_conditions),
    st.builds(
        m.MatchedUpdate,
        _clause_lists,
        variables,
        st.lists(st.builds(m.Assignment, names(), values | fields), min_size=1, max_size=3).map(tuple),
    ),
    st.builds(m.MatchedDelete, _clause_lists, variables),
)
writes: Strategy = _brief(st.builds(m.WriteBody, st.lists(statements, min_size=1, max_size=3).map(tuple)))

_scalars = st.sampled_from([s for s in ScalarType if s is not ScalarType.VECTOR])
types: Strategy = st.builds(PropertyType, _scalars, st.booleans(), st.booleans())
types |= st.builds(PropertyType, st.just(ScalarType.VECTOR), st.booleans(), vector_dim=st.integers(1, 4096))
parameters: Strategy = st.builds(m.Parameter, words(), types, st.none() | literals | null | lists)


def queries(bodies: Strategy = reads | writes) -> Strategy:
    """Whole queries."""
    notes = st.none() | texts
    given = st.lists(parameters, max_size=3).map(tuple)
    return st.builds(m.Query, names(), given, bodies, notes, notes)


def query_files() -> Strategy:
    """Files of a few queries; names may repeat."""
    return st.builds(m.QueryFile, st.lists(queries(), max_size=3).map(tuple))
