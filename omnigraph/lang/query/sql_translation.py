"""Translate a short SQL statement on one table into the query language, for use in a hint.

Translation is best-effort: joins, subqueries and anything else that involves several tables are not supported.
"""

import re

from .foreign_words import rewrite_expression, split_list, type_name

_SELECT = re.compile(
    r"SELECT\s+(?P<distinct>DISTINCT\s+)?(?P<columns>.+?)\s+FROM\s+(?P<table>\w+)(?:\s+(?:AS\s+)?(?P<alias>(?!WHERE|GROUP"
    r"|HAVING|ORDER|LIMIT)\w+))?(?:\s+WHERE\s+(?P<where>.+?))?(?:\s+GROUP\s+BY\s+(?P<group>.+?))?"
    r"(?:\s+HAVING\s+(?P<having>.+?))?(?:\s+ORDER\s+BY\s+(?P<order>.+?))?(?:\s+LIMIT\s+(?P<limit>\d+))?"
    r"(?:\s+OFFSET\s+(?P<offset>\d+))?\s*;?\s*",
    re.IGNORECASE | re.DOTALL,
)
_INSERT = re.compile(r"INSERT\s+INTO\s+(\w+)\s*\(([^()]*)\)\s*VALUES\s*\(([^()]*)\)\s*;?\s*", re.IGNORECASE | re.DOTALL)
_UPDATE = re.compile(r"UPDATE\s+(\w+)\s+SET\s+(.+?)\s+WHERE\s+(.+?)\s*;?\s*", re.IGNORECASE | re.DOTALL)
_DELETE = re.compile(r"DELETE\s+FROM\s+(\w+)\s+WHERE\s+(.+?)\s*;?\s*", re.IGNORECASE | re.DOTALL)


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
        settings = (item.partition("=") for item in split_list(updated[2]))
        assignments = ", ".join(f"{name.strip()}: {_row_expression(value)}" for name, _, value in settings)
        return f"update {type_name(updated[1])} set {{ {assignments} }} where {_row_expression(updated[3])}"  # noqa: S608
    if deleted := _DELETE.fullmatch(statement):
        return f"delete {type_name(deleted[1])} where {_row_expression(deleted[2])}"
    return None


def _row_expression(text: str) -> str:
    return rewrite_expression(text, lambda name: name.rpartition(".")[2])


def _translate_select(parts: re.Match[str]) -> str:
    variable = parts["table"][:1].lower()
    aliases = set(re.findall(r"(?i)\bAS\s+(\w+)", parts["columns"]))

    def write_name(name: str) -> str:
        return name if name in aliases else f"${variable}.{name.rpartition('.')[2]}"

    where = f" {rewrite_expression(parts['where'], write_name)}" if parts["where"] else ""
    columns = rewrite_expression(re.sub(r"^\s*(?:\w+\.)?\*\s*$", f"${variable}", parts["columns"]), write_name)
    result = f"match {{ ${variable}: {type_name(parts['table'])}{where} }} "
    result += f"return {'distinct ' * bool(parts['distinct'])}{{ {columns} }}"
    for keyword, part in (("having", parts["having"]), ("order", parts["order"])):
        result += f" {keyword} {{ {rewrite_expression(part, write_name)} }}" if part else ""
    result += f" limit {parts['limit']}" if parts["limit"] else ""
    return result + (f" offset {parts['offset']}" if parts["offset"] else "")
