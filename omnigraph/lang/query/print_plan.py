"""Print a plan as text, one operator per line, for people and tests.

The text is never parsed. The only guarantee is that equal plans produce the same text.
"""

from collections.abc import Iterable, Iterator

from omnigraph.values import BlobUri, PropertyType, ScalarType, format_blob, format_date, format_datetime

from . import plan, plan_paths


def explain_plan(query_plan: plan.Plan) -> str:
    """Return the plan as indented lines.

    >>> print(explain_plan(plan.ReadPlan((plan.NodeScan("p", "Person"),), (), ("p",))))
    scan $p: Person
    return
    """
    match query_plan:
        case plan.ReadPlan():
            plan_lines = _read_plan_lines(query_plan)
        case plan.UnionPlan():
            plan_lines = _union_plan_lines(query_plan)
        case plan.WritePlan():
            plan_lines = _write_plan_lines(query_plan)
    return "\n".join(plan_lines)


def _union_plan_lines(union_plan: plan.UnionPlan) -> Iterator[str]:
    for part in union_plan.parts:
        yield "part"
        yield from (f"  {line}" for line in _read_plan_lines(part))
    column_texts = (
        f"{column.name}: {column.type.display() if column.type is not None else 'object'}"
        for column in union_plan.columns
    )
    yield f"union {'all ' * union_plan.keeps_duplicates}{', '.join(column_texts)}"
    yield from _tail_lines(union_plan)


def _read_plan_lines(read_plan: plan.ReadPlan) -> Iterator[str]:
    yield from _operator_lines(read_plan.operators, "")
    flags = [flag for flag, is_set in (("distinct", read_plan.distinct), ("grouped", read_plan.aggregated)) if is_set]
    columns_text = ", ".join(_column_text(column) for column in read_plan.columns)
    yield " ".join(line_part for line_part in ("return", *flags, columns_text) if line_part)
    if read_plan.having is not None:
        yield f"having {predicate_text(read_plan.having)}"
    if read_plan.ranking is not None:
        yield f"rank {value_text(read_plan.ranking)}"
    yield from _tail_lines(read_plan)


def _tail_lines(query_plan: plan.ReadPlan | plan.UnionPlan) -> Iterator[str]:
    if query_plan.order:
        yield f"order {', '.join(_sort_key_text(key) for key in query_plan.order)}"
    if query_plan.limit is not None:
        yield f"limit {value_text(query_plan.limit)}"
    if query_plan.offset is not None:
        yield f"offset {value_text(query_plan.offset)}"


def _column_text(column: plan.PlanColumn) -> str:
    rendered_value = value_text(column.value)
    type_text = column.type.display() if column.type is not None else "object"
    return f"{column.name} = {rendered_value}: {type_text}"


def _sort_key_text(sort_key: plan.SortKey) -> str:
    key_text = sort_key.column if sort_key.column is not None else value_text(sort_key.value)
    return f"{key_text} desc" if sort_key.descending else key_text


def _operator_lines(operators: Iterable[plan.Operator], indent: str) -> Iterator[str]:
    for operator in operators:
        yield indent + operator_text(operator)
        if isinstance(operator, plan.AntiJoin | plan.LeftJoin):
            yield from _operator_lines(operator.inner, indent + "  ")


def operator_text(operator: plan.Operator) -> str:  # noqa: PLR0911 - one return per kind
    """Return one operator as text, without its inner operators."""
    match operator:
        case plan.NodeScan():
            implementers_text = f" ({' | '.join(operator.implementers)})" if operator.implementers else ""
            return f"scan ${operator.variable}: {operator.type_name}{implementers_text}" + _filters_text(
                operator.filters
            )
        case plan.Expand():
            return _expand_text(operator)
        case plan.FindPaths():
            return _find_paths_text(operator)
        case plan.CloseCycle():
            return f"close ${operator.left} = ${operator.right}"
        case plan.Filter():
            return f"filter {predicate_text(operator.predicate)}"
        case plan.AntiJoin():
            return f"without {_variables_text(operator.outer)}"
        case plan.LeftJoin():
            return f"maybe {_variables_text(operator.outer)} -> {_variables_text(operator.introduced)}"


def _expand_text(expansion: plan.Expand) -> str:
    steps_text = "|".join(_step_text(step) for step in expansion.steps)
    edge_text = f" as ${expansion.edge_variable}" if expansion.edge_variable is not None else ""
    hops_text = f" {{{expansion.min_hops},{expansion.max_hops}}}"
    hops_text = "" if (expansion.min_hops, expansion.max_hops) == (1, 1) else hops_text
    target_text = f"${expansion.target or '_'}: {expansion.target_type}"
    filters_text = _filters_text(expansion.target_filters) + _edge_test_text(expansion.edge_test)
    return f"expand ${expansion.source} {steps_text}{hops_text}{edge_text} {target_text}{filters_text}"


def _find_paths_text(search: plan.FindPaths) -> str:
    steps_text = "|".join(_step_text(step) for step in search.steps)
    hops_text = f" {{{search.min_hops},{search.max_hops}}}"
    target_text = f"${search.closing}" if search.closing is not None else f"${search.target or '_'}: {search.node_type}"
    filters_text = _filters_text(search.target_filters) + _edge_test_text(search.edge_test)
    cost_text = f" by {value_text(search.cost)}" if search.cost is not None else ""
    backward_text = " backward" if search.backward else ""
    heading = f"paths ${search.path} = {search.mode}{backward_text}"
    return f"{heading} ${search.source} {steps_text}{hops_text} {target_text}{filters_text}{cost_text}"


def _edge_test_text(edge_test: plan.EdgeTest | None) -> str:
    if edge_test is None:
        return ""
    return f" where {' and '.join(predicate_text(predicate) for predicate in edge_test.predicates)}"


def _step_text(step: plan.PlanStep) -> str:
    arrow_formats = {"out": "-{}->", "in": "<-{}-", "both": "-{}-"}
    return arrow_formats[step.direction].format(step.edge_type)


def _filters_text(predicates: tuple[plan.Predicate, ...]) -> str:
    return f" [{'; '.join(predicate_text(predicate) for predicate in predicates)}]" if predicates else ""


def _variables_text(variables: tuple[str, ...]) -> str:
    return ", ".join(f"${variable}" for variable in variables) or "nothing"


_ROW_VERBS = {plan.InsertRow: "insert", plan.UpsertRow: "upsert", plan.PatchRow: "patch"}


def _write_plan_lines(write_plan: plan.WritePlan) -> Iterator[str]:
    for statement in write_plan.statements:
        match statement:
            case plan.InsertRow() | plan.UpsertRow() | plan.PatchRow():
                heading = f"{_ROW_VERBS[type(statement)]} {statement.kind} {statement.type_name}"
                yield f"{heading} {_assignments_text(statement.assignments)}"
            case plan.UpdateRows():
                where_text = predicate_text(statement.where)
                heading = f"update {statement.kind} {statement.type_name} {_assignments_text(statement.assignments)}"
                yield f"{heading} where {where_text}"
            case plan.DeleteRows():
                where_text = predicate_text(statement.where)
                cascade_text = f" with {', '.join(statement.cascades)}" if statement.cascades else ""
                heading = f"delete {statement.kind} {statement.type_name}"
                yield f"{heading} where {where_text}{cascade_text}"
            case plan.MatchedUpdate():
                heading = f"update {statement.kind} {statement.type_name}"
                yield f"{heading} {_assignments_text(statement.assignments)} for each"
                yield from (f"  {line}" for line in _read_plan_lines(statement.matched))
            case plan.MatchedDelete():
                cascade_text = f" with {', '.join(statement.cascades)}" if statement.cascades else ""
                yield f"delete {statement.kind} {statement.type_name}{cascade_text} for each"
                yield from (f"  {line}" for line in _read_plan_lines(statement.matched))


def _assignments_text(assignments: tuple[plan.Assign, ...]) -> str:
    return "{ " + ", ".join(f"{assignment.name}: {value_text(assignment.value)}" for assignment in assignments) + " }"


def value_text(value: plan.Value | plan.Ranking) -> str:  # noqa: PLR0911 - one return per kind
    """Return a value or ranking in query syntax."""
    match value:
        case plan.Constant():
            return _constant_text(value.value, value.type)
        case plan.Parameter():
            return "now()" if value.name == plan.NOW_PARAMETER else f"${value.name}"
        case plan.PropertyValue():
            return f"${value.variable}.{value.name}"
        case plan.SystemValue():
            return f"${value.variable}.{value.field}"
        case plan.Entity() | plan_paths.PathEntity():
            return f"${value.variable}"
        case plan_paths.PathValue():
            return f"{value.function}(${value.variable})"
        case plan.Score():
            return value_text(value.ranking)
        case plan.Aggregate():
            return _aggregate_text(value)
        case plan.Arithmetic() | plan.Negative() | plan.ScalarCall() | plan.Case():
            return _scalar_text(value)
    return _ranking_text(value)


def _scalar_text(value: plan.ScalarValue) -> str:
    match value:
        case plan.Arithmetic():
            steps_text = "".join(f" {operator} {value_text(operand)}" for operator, operand in value.steps)
            return f"({value_text(value.first)}{steps_text})"
        case plan.Negative():
            return f"-{value_text(value.operand)}"
        case plan.ScalarCall():
            return f"{value.function}({', '.join(map(value_text, value.arguments))})"
        case plan.Case():
            branches_text = " ".join(
                f"when {predicate_text(predicate)} then {value_text(result)}" for predicate, result in value.branches
            )
            return f"case {branches_text} else {value_text(value.default)} end"


def _aggregate_text(aggregate: plan.Aggregate) -> str:
    """Return an aggregate as text. A count of a constant that is not null is printed as `count(*)`."""
    is_constant = isinstance(aggregate.argument, plan.Constant) and aggregate.argument.value is not None
    if aggregate.function == "count" and not aggregate.distinct and is_constant:
        return "count(*)"
    distinct_text = "distinct " if aggregate.distinct else ""
    return f"{aggregate.function}({distinct_text}{value_text(aggregate.argument)})"


def _ranking_text(ranking: plan.Ranking) -> str:
    match ranking:
        case plan.Bm25():
            return f"bm25({value_text(ranking.field)}, {value_text(ranking.query)})"
        case plan.Nearest():
            model_text = f" by {ranking.model}" if ranking.model is not None else ""
            return f"nearest({value_text(ranking.field)}, {value_text(ranking.query)}{model_text})"
        case plan.Fuse():
            rankings_text = f"{_ranking_text(ranking.first)}, {_ranking_text(ranking.second)}"
            return f"rrf({rankings_text}, {value_text(ranking.k)})"


def _constant_text(constant_value: object, value_type: PropertyType) -> str:
    if isinstance(constant_value, tuple):
        element_type = value_type.element_type()
        return f"[{', '.join(_constant_text(item, element_type) for item in constant_value)}]"
    if isinstance(constant_value, int) and value_type.scalar is ScalarType.DATE:
        return f'date("{format_date(constant_value)}")'
    if isinstance(constant_value, int) and value_type.scalar is ScalarType.DATETIME:
        return f'datetime("{format_datetime(constant_value)}")'
    if constant_value is None or isinstance(constant_value, bool):
        return {None: "null", True: "true", False: "false"}[constant_value]
    if isinstance(constant_value, bytes | BlobUri):
        constant_value = format_blob(constant_value)
    return f'"{constant_value}"' if isinstance(constant_value, str) else repr(constant_value)


def predicate_text(predicate: plan.Predicate) -> str:  # noqa: PLR0911, C901 - one return per kind
    """Return a predicate in query syntax."""
    match predicate:
        case plan.Compare():
            operand_texts = value_text(predicate.left), value_text(predicate.right)
            return f"{operand_texts[0]} {predicate.operator} {operand_texts[1]}"
        case plan.TextTest():
            operand_texts = value_text(predicate.left), value_text(predicate.right)
            return f"{operand_texts[0]} {predicate.operator} {operand_texts[1]}"
        case plan.InList():
            return f"{value_text(predicate.operand)} in {value_text(predicate.items)}"
        case plan.IsNull():
            null_test = "is not null" if predicate.negated else "is null"
            return f"{value_text(predicate.operand)} {null_test}"
        case plan.OfType():
            return f"${predicate.variable} is {predicate.type_name}"
        case plan.TextSearch():
            return _search_text(predicate)
        case plan.Truth():
            return value_text(predicate.value)
        case plan.And():
            return f"({' and '.join(predicate_text(operand) for operand in predicate.items)})"
        case plan.Or():
            return f"({' or '.join(predicate_text(operand) for operand in predicate.items)})"
        case plan.Not():
            return f"not {predicate_text(predicate.item)}"


def _search_text(search: plan.TextSearch) -> str:
    edits_text = f", {value_text(search.max_edits)}" if search.max_edits is not None else ""
    field_text, query_text = value_text(search.field), value_text(search.query)
    return f"{search.function}({field_text}, {query_text}{edits_text})"
