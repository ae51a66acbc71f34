"""Plans on a tiny graph return the rows of a brute-force evaluation."""

from collections import Counter
from random import Random

from hypothesis import given

from omnigraph.errors import TypeCheckError
from omnigraph.errors.diagnostics import SourceText
from omnigraph.lang.query import compile_query, explain_plan, plan
from omnigraph.lang.query import model as m
from omnigraph.lang.query.compile import diagnose_query
from omnigraph.lang.query.plan_variables import variables_needed_by, variables_of
from omnigraph.lang.schema import compile_schema
from tests.lang.query_check.tiny_graph import FIRMS, PERSONS, Row, rows_of_plan, rows_of_tree
from tests.lang.query_strategies import queries

SCHEMA = compile_schema("""
node Person { name: String @key  age: I32? }
node Firm { name: String @key  age: I32? }
edge Knows: Person -> Person
edge WorksAt: Person -> Firm
""")

MATCHES = 2500


class Writer:
    """Writes a random match; equal seeds write equal ones."""

    def __init__(self, seed: int) -> None:
        self.dice = Random(seed)
        self.edges = 0

    def match(self) -> tuple[m.Clause, ...]:
        first = self.binding(self.dice.choice(("a", "f")))
        return (first, *self.clauses(self.dice.randint(0, 4), 2))

    def clauses(self, number: int, depth: int) -> tuple[m.Clause, ...]:
        return tuple(self.clause(depth) for _ in range(number))

    def clause(self, depth: int) -> m.Clause:
        kind = self.dice.choice("bbttttff" + "nnoo" * (depth > 0))
        match kind:
            case "b":
                return self.binding(self.dice.choice((*PERSONS, *FIRMS)))
            case "t":
                return self.traversal()
            case "f":
                return m.Filter(self.comparison())
        inner = self.clauses(self.dice.randint(1, 3), depth - 1)
        return m.Negation(inner) if kind == "n" else m.OptionalMatch(inner)

    def binding(self, name: str) -> m.Binding:
        tests = (m.InlinePredicate(m.Name("age"), self.age()),) if self.dice.random() < 0.3 else ()
        kind = "Person" if name in PERSONS else "Firm"
        return m.Binding(m.Variable(name), m.Name(kind), tests)

    def age(self) -> m.Literal:
        return m.Literal("int", self.dice.choice("12"))

    def comparison(self) -> m.Comparison:
        left, right = (m.Field(self.dice.choice("aabcffg"), "age") for _ in range(2))
        operator: m.ComparisonOperator = "=" if self.dice.random() < 0.5 else "!="
        return m.Comparison(left, operator, self.age() if self.dice.random() < 0.5 else right)

    def traversal(self) -> m.Traversal:
        ends = [self.dice.choice("aabc_"), self.dice.choice("aabc_")]
        word, undirected = "knows", self.dice.random() < 0.2
        if self.dice.random() < 0.4:
            ends, word, undirected = ([self.dice.choice("aabc_"), self.dice.choice("ffg_")], "worksAt", False)
        self.dice.shuffle(ends)
        source, target = map(m.Variable, ends)
        edge = None
        if self.dice.random() < 0.2:
            self.edges += 1
            edge = m.Variable(f"w{self.edges}")
        return m.Traversal(source, (m.Name(word),), target, undirected, None, edge)


def compiled(body: tuple[m.Clause, ...]) -> plan.ReadPlan | None:
    """The plan of a match, or None when it is refused or took `a` for a firm."""
    one = m.Projection(m.Aggregate("count", m.Literal("int", "1")))
    try:
        query = compile_query(m.Query(m.Name("q"), (), m.ReadBody(body, (one,))), SCHEMA)
    except TypeCheckError:
        return None
    assert isinstance(query.plan, plan.ReadPlan)
    kinds = types_of(query.plan.operators)
    expected = all((name[0] in PERSONS) == (kind == "Person") for name, kind in kinds)
    return query.plan if expected else None


def test_plan_returns_the_rows_of_brute_force() -> None:
    compared = 0
    for seed in range(MATCHES):
        body = Writer(seed).match()
        read = compiled(body)
        if read is None:
            continue
        check_form(read.operators, set())
        names = [name for name in read.variables if not name.startswith("w")]
        found, wanted = rows_of_plan(read.operators, [{}]), rows_of_tree(body, {})
        assert bag(found, names) == bag(wanted, names), f"{seed}\n{explain_plan(read)}"
        compared += 1
    assert compared > MATCHES / 4


def bag(rows: list[Row], names: list[str]) -> Counter[tuple[str | None, ...]]:
    return Counter(tuple(row[name] for name in names) for row in rows)


def types_of(operators: tuple[plan.Operator, ...]) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for one in operators:
        if isinstance(one, plan.NodeScan) and not one.variable.startswith("#"):
            found.append((one.variable, one.type_name))
        elif isinstance(one, plan.Expand) and one.target and not one.target.startswith("#"):
            found.append((one.target, one.target_type))
        elif isinstance(one, plan.AntiJoin | plan.LeftJoin):
            found += types_of(one.inner)
    return found


def check_form(operators: tuple[plan.Operator, ...], there: set[str]) -> set[str]:
    """Variables are introduced once and before they are read; joins name what they need."""
    for one in operators:
        match one:
            case plan.NodeScan():
                new = {one.variable}
            case plan.Expand():
                assert one.source in there
                new = {name for name in (one.target, one.edge_variable) if name is not None}
            case plan.Filter():
                assert variables_of(one.predicate) <= there
                new = set()
            case plan.CloseCycle():
                assert {one.left, one.right} <= there
                new = set()
            case plan.AntiJoin() | plan.LeftJoin():
                assert set(one.outer) == variables_needed_by(one.inner) <= there
                inside = check_form(one.inner, set(there))
                new = set(one.introduced) if isinstance(one, plan.LeftJoin) else set()
                assert new <= inside
        assert not new & there
        there |= new
    return there


@given(queries())
def test_checker_never_raises_on_random_trees(query: m.Query) -> None:
    found = diagnose_query(query, SCHEMA, SourceText("q.gq", ""))
    assert (found.compiled is None) is bool(found.errors)
