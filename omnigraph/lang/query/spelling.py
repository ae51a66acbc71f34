"""The spelling of syntax nodes on one line.

Owns the canonical spelling: spaces, commas, and parentheses only where the tree needs them. The
spelled text must parse to an equal tree. Line breaks are decided by the formatter.
"""

from collections.abc import Iterable

from omnigraph.diagnostics import NOWHERE

from .model import (
    Aggregate,
    Alias,
    And,
    Assignment,
    Binding,
    Call,
    Clause,
    Comparison,
    Condition,
    Delete,
    Expression,
    Field,
    Filter,
    Hops,
    InlinePredicate,
    Insert,
    IsNull,
    ListLiteral,
    Literal,
    Membership,
    Negation,
    Not,
    Now,
    OptionalMatch,
    Or,
    Ordering,
    Parameter,
    Projection,
    Query,
    ReadBody,
    Statement,
    TextMatch,
    Traversal,
    Update,
    Variable,
    WordPair,
    WriteBody,
)

_ESCAPES = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n", "\r": r"\r", "\t": r"\t"})
_PAIRING = ("contains", "starts_with")


def quoted(text: str) -> str:
    r"""Return a string literal whose content is `text`.

    >>> print(quoted('a "b"'))
    "a \"b\""
    """
    return f'"{text.translate(_ESCAPES)}"'


class Speller:
    """Spells nodes; strings keep the spelling they have in the text that the nodes came from.

    >>> Speller().expression(Field("p", "name"))
    '$p.name'
    """

    def __init__(self, text: str = "") -> None:
        self._text = text

    # Expressions ----------------------------------------------------------------------------

    def expression(self, node: Expression) -> str:
        """Spell a value, call or name."""
        match node:
            case Variable(name):
                text = f"${name}"
            case Field(variable, name):
                text = f"${variable}.{name}"
            case Alias(name):
                text = name
            case Now():
                text = "now()"
            case Literal():
                text = self._literal(node)
            case ListLiteral(items):
                text = f"[{self._listed(items)}]"
            case Call(function, arguments):
                text = f"{function}({self._listed(arguments)})"
            case Aggregate(function, argument, distinct):
                text = f"{function}({'distinct ' * distinct}{self.expression(argument)})"
        return text

    def _listed(self, nodes: Iterable[Expression]) -> str:
        return ", ".join(self.expression(node) for node in nodes)

    def _literal(self, node: Literal) -> str:
        if node.kind in ("date", "datetime"):
            return f"{node.kind}({quoted(node.text)})"
        if node.kind != "string":
            return node.text
        written = "" if node.span == NOWHERE else self._text[node.span.start : node.span.end]
        return written or quoted(node.text)

    # Conditions -----------------------------------------------------------------------------

    def condition(self, node: Condition) -> str:
        """Spell a condition, with parentheses around nested ones where the meaning needs them."""
        match node:
            case Comparison(left, operator, right):
                text = f"{self.expression(left)} {operator} {self.expression(right)}"
            case Membership(operand, items):
                text = f"{self.expression(operand)} in {self.expression(items)}"
            case IsNull(operand, negated):
                text = f"{self.expression(operand)} is {'not ' * negated}null"
            case TextMatch(call):
                text = self.expression(call)
            case Not(And() | Or() | Not() as item):
                text = f"not ({self.condition(item)})"
            case Not(item):
                text = f"not {self.condition(item)}"
            case And() | Or():
                text = f" {glue(node)} ".join(self.operands(node))
        return text

    def operands(self, node: And | Or) -> list[str]:
        """Return the operands of a combination, with the parentheses they need."""
        loose = Or if isinstance(node, And) else ()
        spelled = ((item, self.condition(item)) for item in node.items)
        return [f"({text})" if isinstance(item, loose) else text for item, text in spelled]

    # Clauses --------------------------------------------------------------------------------

    def clause(self, node: Clause) -> str:
        """Spell a clause on one line."""
        match node:
            case Binding():
                return self.binding(node)
            case Traversal():
                return _traversal(node)
            case WordPair():
                return f"${node.left.name} {node.word.text} ${node.right.name}"
            case Filter():
                return self.filter(node.condition)
            case Negation() | OptionalMatch():
                inner = " ".join(self.clause(one) for one in node.clauses)
                return f"{opening(node)} {{ {inner} }}"

    def filter(self, node: Condition) -> str:
        """Spell a condition as a clause; a test of two variables would parse as a traversal."""
        text = self.condition(node)
        match node:
            case Comparison(Variable(), operator, Variable()) if operator in _PAIRING:
                return f"({text})"
            case Membership(Variable(), Variable()):
                return f"({text})"
        return text

    def binding(self, node: Binding) -> str:
        """`$p: Person { name: "Ann" }`."""
        head = f"${node.variable.name}: {node.type_name.text}"
        inner = ", ".join(self.predicate(one) for one in node.predicates)
        return f"{head} {{ {inner} }}" if inner else head

    def predicate(self, node: InlinePredicate | Assignment) -> str:
        """`name: "Ann"`."""
        return f"{node.name.text}: {self.expression(node.value)}"

    # Parts of queries -----------------------------------------------------------------------

    def parameter(self, node: Parameter) -> str:
        """`$n: I32 = 10`."""
        default = "" if node.default is None else f" = {self.expression(node.default)}"
        return f"${node.name}: {node.type.display()}{default}"

    def projection(self, node: Projection) -> str:
        """`count($x) as n`."""
        alias = "" if node.alias is None else f" as {node.alias.text}"
        return self.expression(node.expression) + alias

    def ordering(self, node: Ordering) -> str:
        """`n desc`."""
        direction = "" if node.direction is None else f" {node.direction}"
        return self.expression(node.expression) + direction

    def statement(self, node: Statement) -> str:
        """Spell a mutation on one line."""
        if isinstance(node, Delete):
            return f"delete {node.type_name.text} where {self.condition(node.where)}"
        inner = ", ".join(self.predicate(one) for one in node.assignments)
        where = "" if isinstance(node, Insert) else f" where {self.condition(node.where)}"
        return f"{opening(node)} {{ {inner} }}{where}"

    def query(self, node: Query) -> str:
        """Spell a query on one line."""
        given = ", ".join(self.parameter(one) for one in node.parameters)
        notes = (("description", node.description), ("instruction", node.instruction))
        said = "".join(f" @{word}({quoted(text)})" for word, text in notes if text is not None)
        body = node.body
        inner = self._read(body) if isinstance(body, ReadBody) else self._write(body)
        return f"query {node.name.text}({given}){said} {{ {inner} }}"

    def _write(self, node: WriteBody) -> str:
        return " ".join(self.statement(one) for one in node.statements)

    def _read(self, node: ReadBody) -> str:
        clauses = " ".join(self.clause(clause) for clause in node.clauses)
        columns = ", ".join(self.projection(column) for column in node.projections)
        parts = [f"match {{ {clauses} }} return {'distinct ' * node.distinct}{{ {columns} }}"]
        if node.orderings:
            parts.append(f"order {{ {', '.join(self.ordering(key) for key in node.orderings)} }}")
        parts += [] if node.limit is None else [f"limit {self.expression(node.limit)}"]
        parts += [] if node.offset is None else [f"offset {self.expression(node.offset)}"]
        return " ".join(parts)


def glue(node: And | Or) -> str:
    """Return the word between the operands of a combination."""
    return "and" if isinstance(node, And) else "or"


def opening(node: Negation | OptionalMatch | Insert | Update) -> str:
    """Return the words before the brace of a block or statement."""
    match node:
        case Negation():
            return "not"
        case OptionalMatch():
            return "optional"
        case Insert(type_name):
            return f"insert {type_name.text}"
        case Update(type_name):
            return f"update {type_name.text} set"


def _traversal(node: Traversal) -> str:
    words = "|".join(edge.text for edge in node.edges)
    words = f"<{words}>" if node.undirected else words
    variable = "" if node.edge_variable is None else f"${node.edge_variable.name}:"
    return f"${node.source.name} {variable}{words}{_hops(node.hops)} ${node.target.name}"


def _hops(node: Hops | None) -> str:
    if node is None:
        return ""
    return f"{{{node.low},{'' if node.high is None else node.high}}}"
