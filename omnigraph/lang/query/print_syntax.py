"""Print syntax nodes on one line.

This module defines the canonical spacing and commas, and prints parentheses only where the tree requires them. The
printed text must parse to an equal tree. The formatter decides where lines break.
"""

from collections.abc import Iterable

from omnigraph.errors.diagnostics import NO_SPAN

from .model import (
    Aggregate,
    Alias,
    AllRows,
    And,
    Arithmetic,
    Assignment,
    Binding,
    Call,
    Case,
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
    MatchedDelete,
    MatchedUpdate,
    Membership,
    Negation,
    Negative,
    Not,
    Now,
    OptionalMatch,
    Or,
    Ordering,
    Parameter,
    Patch,
    Projection,
    Query,
    ReadBody,
    ScalarCall,
    ScalarExpression,
    Statement,
    TextMatch,
    Traversal,
    Truth,
    UnionBody,
    Update,
    Upsert,
    Variable,
    WordPair,
    WriteBody,
)

_STRING_ESCAPES = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n", "\r": r"\r", "\t": r"\t"})
_PAIRING_OPERATORS = ("contains", "starts_with")


def quote_string(text: str) -> str:
    r"""Return `text` as a quoted string literal.

    >>> print(quote_string('a "b"'))
    "a \"b\""
    """
    return f'"{text.translate(_STRING_ESCAPES)}"'


class Speller:
    """Prints nodes. String literals are printed exactly as they are written in the source text.

    >>> Speller().expression(Field("p", "name"))
    '$p.name'
    """

    def __init__(self, source_text: str = "") -> None:
        self._source_text = source_text

    # Expressions ----------------------------------------------------------------------------

    def expression(self, expression: Expression) -> str:  # noqa: C901 - one case per kind
        """Return a value, call or name as text."""
        match expression:
            case Variable(name):
                spelling = f"${name}"
            case Field(variable, name):
                spelling = f"${variable}.{name}"
            case Alias(name):
                spelling = name
            case AllRows():
                spelling = "*"
            case Now():
                spelling = "now()"
            case Literal():
                spelling = self._spell_literal(expression)
            case ListLiteral(items):
                spelling = f"[{self._join_expressions(items)}]"
            case Call(function, arguments):
                spelling = f"{function}({self._join_expressions(arguments)})"
            case Aggregate(function, argument, distinct):
                spelling = f"{function}({'distinct ' * distinct}{self.expression(argument)})"
            case Arithmetic() | Negative() | ScalarCall() | Case():
                spelling = self._spell_scalar(expression)
        return spelling

    def _spell_scalar(self, expression: ScalarExpression) -> str:
        match expression:
            case Arithmetic(operands, operators):
                spelled_operands = [
                    self._spell_operand(operand, expression.is_additive, operand_index == 0)
                    for operand_index, operand in enumerate(operands)
                ]
                steps = zip(operators, spelled_operands[1:], strict=True)
                return spelled_operands[0] + "".join(f" {operator} {operand}" for operator, operand in steps)
            case Negative(operand):
                operand_spelling = self.expression(operand)
                is_signed = isinstance(operand, Arithmetic) or operand_spelling.startswith("-")
                return f"-({operand_spelling})" if is_signed else f"-{operand_spelling}"
            case ScalarCall(function, arguments):
                return f"{function}({self._join_expressions(arguments)})"
        branches = (
            f"when {self.condition(branch.condition)} then {self.expression(branch.value)}"
            for branch in expression.branches
        )
        default_text = "" if expression.default is None else f"else {self.expression(expression.default)} "
        return f"case {' '.join(branches)} {default_text}end"

    def _spell_operand(self, operand: Expression, is_additive: bool, is_first: bool) -> str:
        """Return an arithmetic operand as text, in parentheses if it would otherwise merge with another chain."""
        spelling = self.expression(operand)
        if not isinstance(operand, Arithmetic):
            return spelling
        binds_tighter = is_additive and not operand.is_additive
        continues_chain = is_first and operand.is_additive == is_additive
        return spelling if binds_tighter or continues_chain else f"({spelling})"

    def _join_expressions(self, expressions: Iterable[Expression]) -> str:
        return ", ".join(self.expression(expression) for expression in expressions)

    def _spell_literal(self, literal: Literal) -> str:
        if literal.kind in ("date", "datetime"):
            return f"{literal.kind}({quote_string(literal.text)})"
        if literal.kind != "string":
            return literal.text
        source_spelling = "" if literal.span == NO_SPAN else self._source_text[literal.span.start : literal.span.end]
        return source_spelling or quote_string(literal.text)

    # Conditions -----------------------------------------------------------------------------

    def condition(self, condition: Condition) -> str:
        """Return a condition as text, with parentheses around nested conditions where necessary."""
        match condition:
            case Comparison(left, operator, right):
                spelling = f"{self.expression(left)} {operator} {self.expression(right)}"
            case Membership(operand, items):
                spelling = f"{self.expression(operand)} in {self.expression(items)}"
            case IsNull(operand, negated):
                spelling = f"{self.expression(operand)} is {'not ' * negated}null"
            case TextMatch(call):
                spelling = self.expression(call)
            case Truth(value):
                spelling = self.expression(value)
                spelling = spelling if isinstance(value, ScalarCall) else f"({spelling})"
            case Not(And() | Or() | Not() as item):
                spelling = f"not ({self.condition(item)})"
            case Not(item):
                spelling = f"not {self.condition(item)}"
            case And() | Or():
                spelling = f" {combining_word(condition)} ".join(self.operands(condition))
        return spelling

    def operands(self, combination: And | Or) -> list[str]:
        """Return a combined condition's operands, in parentheses where necessary."""
        looser_class = Or if isinstance(combination, And) else ()
        spelled_operands = ((operand, self.condition(operand)) for operand in combination.items)
        return [
            f"({spelling})" if isinstance(operand, looser_class) else spelling for operand, spelling in spelled_operands
        ]

    # Clauses --------------------------------------------------------------------------------

    def clause(self, clause: Clause) -> str:
        """Return a clause on one line."""
        match clause:
            case Binding():
                return self.binding(clause)
            case Traversal():
                return self.traversal(clause)
            case WordPair():
                return f"${clause.left.name} {clause.word.text} ${clause.right.name}"
            case Filter():
                return self.filter(clause.condition)
            case Negation() | OptionalMatch():
                inner_text = " ".join(self.clause(inner_clause) for inner_clause in clause.clauses)
                return f"{block_opening(clause)} {{ {inner_text} }}"

    def filter(self, condition: Condition) -> str:
        """Return a condition as a clause, in parentheses if it would otherwise be parsed differently.

        Without parentheses, a test of two variables would be parsed as a traversal, and a leading `-` would continue
        the previous condition.
        """
        spelling = self.condition(condition)
        if spelling.startswith("-"):
            return f"({spelling})"
        match condition:
            case Comparison(Variable(), operator, Variable()) if operator in _PAIRING_OPERATORS:
                return f"({spelling})"
            case Membership(Variable(), Variable()):
                return f"({spelling})"
        return spelling

    def binding(self, binding: Binding) -> str:
        """Return a binding such as `$p: Person { name: "Ann" }`."""
        heading = f"${binding.variable.name}: {binding.type_name.text}"
        predicates_text = ", ".join(self.predicate(predicate) for predicate in binding.predicates)
        return f"{heading} {{ {predicates_text} }}" if predicates_text else heading

    def traversal(self, traversal: Traversal) -> str:
        """Return a traversal such as `$p = any shortest $a $w:knows{1,3} $b where $w.k > 1`."""
        return " ".join(self.traversal_parts(traversal))

    def traversal_parts(self, traversal: Traversal) -> list[str]:
        """Split a traversal at the places where a line may break: before `where` and `by`."""
        path = traversal.path
        path_text = "" if path is None else f"${path.variable.name} = {path.mode} "
        parts = [f"{path_text}{_spell_traversal(traversal)}"]
        parts += [] if traversal.edge_test is None else [f"where {self.condition(traversal.edge_test)}"]
        parts += [] if path is None or path.cost is None else [f"by {self.expression(path.cost)}"]
        return parts

    def predicate(self, named_value: InlinePredicate | Assignment) -> str:
        """Return a property match such as `name: "Ann"`."""
        return f"{named_value.name.text}: {self.expression(named_value.value)}"

    # Query parts ----------------------------------------------------------------------------

    def parameter(self, parameter: Parameter) -> str:
        """Return a parameter such as `$n: I32 = 10`."""
        default_text = "" if parameter.default is None else f" = {self.expression(parameter.default)}"
        return f"${parameter.name}: {parameter.type.display()}{default_text}"

    def projection(self, projection: Projection) -> str:
        """Return a result column such as `count($x) as n`."""
        alias_text = "" if projection.alias is None else f" as {projection.alias.text}"
        return self.expression(projection.expression) + alias_text

    def ordering(self, ordering: Ordering) -> str:
        """Return a sort key such as `n desc`."""
        direction_text = "" if ordering.direction is None else f" {ordering.direction}"
        return self.expression(ordering.expression) + direction_text

    def statement(self, statement: Statement) -> str:
        """Return a mutation statement on one line."""
        if isinstance(statement, Delete):
            return f"delete {statement.type_name.text} where {self.condition(statement.where)}"
        if isinstance(statement, MatchedDelete):
            return f"{self._match_text(statement.clauses)} delete ${statement.variable.name}"
        assignments_text = ", ".join(self.predicate(assignment) for assignment in statement.assignments)
        if isinstance(statement, MatchedUpdate):
            match_text = self._match_text(statement.clauses)
            return f"{match_text} {block_opening(statement)} {{ {assignments_text} }}"
        where_text = f" where {self.condition(statement.where)}" if isinstance(statement, Update) else ""
        return f"{block_opening(statement)} {{ {assignments_text} }}{where_text}"

    def _match_text(self, clauses: Iterable[Clause]) -> str:
        return f"match {{ {' '.join(self.clause(clause) for clause in clauses)} }}"

    def query(self, query: Query) -> str:
        """Return a query on one line."""
        parameters_text = ", ".join(self.parameter(parameter) for parameter in query.parameters)
        annotations = (("description", query.description), ("instruction", query.instruction))
        annotations_text = "".join(
            f" @{annotation_name}({quote_string(annotation_text)})"
            for annotation_name, annotation_text in annotations
            if annotation_text is not None
        )
        body = query.body
        body_text = self._spell_write_body(body) if isinstance(body, WriteBody) else self._spell_read_body(body)
        return f"query {query.name.text}({parameters_text}){annotations_text} {{ {body_text} }}"

    def _spell_write_body(self, write_body: WriteBody) -> str:
        return " ".join(self.statement(statement) for statement in write_body.statements)

    def _spell_read_body(self, read_body: ReadBody | UnionBody) -> str:
        if isinstance(read_body, UnionBody):
            part_texts = [f" {union_words(read_body)} ".join(self._spell_select(part) for part in read_body.parts)]
        else:
            part_texts = [self._spell_select(read_body)]
        if read_body.orderings:
            part_texts.append(f"order {{ {', '.join(self.ordering(key) for key in read_body.orderings)} }}")
        part_texts += [] if read_body.limit is None else [f"limit {self.expression(read_body.limit)}"]
        part_texts += [] if read_body.offset is None else [f"offset {self.expression(read_body.offset)}"]
        return " ".join(part_texts)

    def _spell_select(self, read_body: ReadBody) -> str:
        columns_text = ", ".join(self.projection(column) for column in read_body.projections)
        distinct_text = "distinct " * read_body.distinct
        having_text = "" if read_body.having is None else f" having {{ {self.condition(read_body.having)} }}"
        return f"{self._match_text(read_body.clauses)} return {distinct_text}{{ {columns_text} }}{having_text}"


def union_words(union_body: UnionBody) -> str:
    """Return the keywords between the parts of a union."""
    return "union all" if union_body.keeps_duplicates else "union"


def combining_word(combination: And | Or) -> str:
    """Return the keyword between the operands of a combined condition."""
    return "and" if isinstance(combination, And) else "or"


def block_opening(block: Negation | OptionalMatch | Insert | Upsert | Patch | Update | MatchedUpdate) -> str:
    """Return the text before the opening brace of a block or statement."""
    match block:
        case Negation():
            return "not"
        case OptionalMatch():
            return "optional"
        case Insert(type_name) | Upsert(type_name) | Patch(type_name):
            return f"{type(block).__name__.lower()} {type_name.text}"
        case Update(type_name):
            return f"update {type_name.text} set"
        case MatchedUpdate():
            return f"update ${block.variable.name} set"


def _spell_traversal(traversal: Traversal) -> str:
    edge_words = "|".join(edge.text for edge in traversal.edges)
    edge_words = f"<{edge_words}>" if traversal.undirected else edge_words
    variable_prefix = "" if traversal.edge_variable is None else f"${traversal.edge_variable.name}:"
    edge_text = f"{variable_prefix}{edge_words}{_spell_hops(traversal.hops)}"
    return f"${traversal.source.name} {edge_text} ${traversal.target.name}"


def _spell_hops(hops: Hops | None) -> str:
    if hops is None:
        return ""
    return f"{{{hops.low},{'' if hops.high is None else hops.high}}}"
