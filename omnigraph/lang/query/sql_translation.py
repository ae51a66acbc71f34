"""Translate a short SQL statement on one table into the query language, for use in a hint.

Translation is best-effort: joins, subqueries and anything else that involves several tables are not supported.
"""

import re
from functools import partial

from .foreign_words import NameWriter, rewrite_expression, split_list, type_name

_SELECT = re.compile(
    r"SELECT\s+(?P<distinct>DISTINCT\s+)?(?P<columns>.+?)\s+FROM\s+(?P<table>\w+)(?:\s+(?:AS\s+)?(?P<alias>(?!WHERE|GROUP"
    r"|HAVING|ORDER|LIMIT)\w+))?(?:\s+WHERE\s+(?P<where>.+?))?(?:\s+GROUP\s+BY\s+(?P<group>.+?))?"
    r"(?:\s+HAVING\s+(?P<having>.+?))?(?:\s+ORDER\s+BY\s+(?P<order>.+?))?(?:\s+LIMIT\s+(?P<limit>\d+))?"
    r"(?:\s+OFFSET\s+(?P<offset>\d+))?\s*;?\s*",
    re.IGNORECASE | re.DOTALL,
)
_INSERT = re.compile(r"INSERT\s+INTO\s+(\w+)\s*\(([^()]*)\)\s*VALUES\s*\(([^()]*)\)\s*;?\s*", re.IGNORECASE | re.DOTALL)
_UPDATE = re.compile(r"UPDATE\s+(\w+)\s+SET\s+(.+?)(?:\s+WHERE\s+(.+?))?\s*;?\s*", re.IGNORECASE | re.DOTALL)
_DELETE = re.compile(r"DELETE\s+FROM\s+(\w+)(?:\s+WHERE\s+(.+?))?\s*;?\s*", re.IGNORECASE | re.DOTALL)

_AGGREGATE = re.compile(r"\b(?:count|sum|avg|min|max|collect)\s*\(")
_COLUMN_NAME = re.compile(r"\s+as\s+")


def translate_sql(statement: str) -> str | None:
    """Return the body of an equivalent query, or None if the statement is not supported.

    >>> translate_sql("SELECT city, COUNT(*) FROM person WHERE age > 3 GROUP BY city HAVING COUNT(*) > 1")
    'match { $p: Person $p.age > 3 } return { $p.city, count(*) } having { count(*) > 1 }'
    >>> translate_sql("INSERT INTO Person (name, age) VALUES ('Ann', 3)")
    'insert Person { name: "Ann", age: 3 }'
    """
    if selected := _SELECT.fullmatch(statement):
        return _translate_select(selected)
    if inserted := _INSERT.fullmatch(statement):
        names, values = split_list(inserted[2]), split_list(inserted[3])
        pairs = zip(names, values, strict=False)
        assignments = ", ".join(f"{name}: {_row_expression(value)}" for name, value in pairs)
        return f"insert {type_name(inserted[1])} {{ {assignments} }}"
    if updated := _UPDATE.fullmatch(statement):
        return _translate_update(*updated.groups())
    if deleted := _DELETE.fullmatch(statement):
        return _translate_delete(*deleted.groups())
    return None


def _translate_update(table: str, settings: str, where: str | None) -> str:
    """Translate an update.

    If the SQL statement has no `WHERE`, write a `match` that finds all nodes, because `update Person` requires a
    condition.
    """
    variable = table[:1].lower()
    write_value = _row_expression if where is not None else partial(rewrite_expression, write_name=_names_of(variable))
    pairs = (item.partition("=") for item in split_list(settings))
    assignments = ", ".join(f"{name.strip()}: {write_value(value)}" for name, _, value in pairs)
    if where is None:
        return f"match {{ ${variable}: {type_name(table)} }} update ${variable} set {{ {assignments} }}"  # noqa: S608
    return f"update {type_name(table)} set {{ {assignments} }} where {_row_expression(where)}"  # noqa: S608


def _translate_delete(table: str, where: str | None) -> str:
    variable = table[:1].lower()
    if where is None:
        return f"match {{ ${variable}: {type_name(table)} }} delete ${variable}"
    return f"delete {type_name(table)} where {_row_expression(where)}"


def _names_of(variable: str) -> NameWriter:
    """Return a function that writes a name as a property of the variable."""
    return lambda name: f"${variable}.{name.rpartition('.')[2]}"


def _row_expression(text: str) -> str:
    return rewrite_expression(text, lambda name: name.rpartition(".")[2])


def _translate_select(parts: re.Match[str]) -> str | None:
    variable = parts["table"][:1].lower()
    aliases = set(re.findall(r"(?i)\bAS\s+(\w+)", parts["columns"]))
    write_property = _names_of(variable)

    def write_name(name: str) -> str:
        return name if name in aliases else write_property(name)

    where = f" {rewrite_expression(parts['where'], write_name)}" if parts["where"] else ""
    columns = rewrite_expression(re.sub(r"^\s*(?:\w+\.)?\*\s*$", f"${variable}", parts["columns"]), write_name)
    is_distinct = parts["distinct"] or (parts["group"] and not _AGGREGATE.search(columns))
    if parts["group"]:
        grouped_columns = _add_group_keys(columns, rewrite_expression(parts["group"], write_name))
        if grouped_columns is None:
            return None
        columns = grouped_columns
    result = f"match {{ ${variable}: {type_name(parts['table'])}{where} }} "
    result += f"return {'distinct ' * bool(is_distinct)}{{ {columns} }}"
    for keyword, part in (("having", parts["having"]), ("order", parts["order"])):
        result += f" {keyword} {{ {rewrite_expression(part, write_name)} }}" if part else ""
    result += f" limit {parts['limit']}" if parts["limit"] else ""
    return result + (f" offset {parts['offset']}" if parts["offset"] else "")


def _add_group_keys(columns: str, group_keys: str) -> str | None:
    """Return the columns and any missing group keys, or None if a key refers to a column by position.

    In a query, the columns without aggregates are the group keys.
    """
    keys, listed_columns = split_list(group_keys), split_list(columns)
    if any(key.isdecimal() for key in keys):
        return None
    known_names = {name for column in listed_columns for name in (column, *_COLUMN_NAME.split(column))}
    return ", ".join([*(key for key in keys if key not in known_names), *listed_columns])
