"""`graph.queries`: the queries that are stored on a server, as a mapping from names to functions.

This module does not depend on the server or its routes: the client passes the functions that list and run the queries.
A graph that this process opens from its files has no stored queries.
"""

import inspect
import keyword
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal, NoReturn

from omnigraph.errors import OmnigraphError, StoredQueryNotFound, UsageError
from omnigraph.lang.schema.names import did_you_mean
from omnigraph.records.cached_property import cached_property

RunStoredQuery = Callable[["StoredQuery", Mapping[str, Any]], Any]


class StoredQuery:
    """A query that is stored on a server. Call it like a function, as in `graph.queries.adults(min=18)`.

    `kind` is `read` or `mutation`. `params` contains the kind of each parameter, such as `int` or `[string]`, with a
    `?` if the parameter accepts None. The docstring is the query's description.
    """

    def __init__(
        self,
        name: str,
        kind: Literal["read", "mutation"],
        params: Mapping[str, str],
        run: RunStoredQuery,
        *,
        description: str | None = None,
        instruction: str | None = None,
    ) -> None:
        self.name, self.kind, self.params = name, kind, params
        self.description, self.instruction = description, instruction
        self._run = run
        self.__doc__ = description or f"Run the stored query `{name}`."
        self.__name__ = name
        self.__signature__ = _write_signature(params)

    def __call__(self, /, **params: Any) -> Any:
        """Run the query. A read returns a `Result`, and a mutation returns a `Receipt`."""
        return self._run(self, params)

    def __repr__(self) -> str:
        return f"<StoredQuery {self.kind}: {write_declaration(self.name, self.params)}>"


class StoredQueries:
    """The queries that are stored on a server, by name.

    Look up a query by its name, as in `graph.queries["adults"]` or `graph.queries.adults`, and call it with its
    parameters as keyword arguments. The server's list of queries is read once, when it is first needed, and read again
    after `graph.refresh()`. A query with the name of a method, such as `names`, can be looked up only with brackets.
    """

    def __init__(self, read_queries: Callable[[], Mapping[str, StoredQuery]], owner: str) -> None:
        self._read_queries, self._owner = read_queries, owner

    def __reduce__(self) -> tuple[Any, ...]:
        return StoredQueries, (self._read_queries, self._owner)  # a copy reads the list again

    @cached_property
    def _by_name(self) -> Mapping[str, StoredQuery]:
        return self._read_queries()

    def __repr__(self) -> str:
        return f"<StoredQueries of {self._owner}>"

    def names(self) -> list[str]:
        """Return the names of all stored queries, sorted."""
        return sorted(self._by_name)

    def values(self) -> list[StoredQuery]:
        """Return all stored queries, sorted by name."""
        return [self._by_name[name] for name in self.names()]

    def get(self, name: str) -> StoredQuery | None:
        """Return a stored query by name, or None."""
        return self._by_name.get(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self.names())

    def __len__(self) -> int:
        return len(self._by_name)

    def __contains__(self, name: object) -> bool:
        return name in self._by_name

    def __getitem__(self, name: str) -> StoredQuery:
        """Return a stored query by name. Raises `StoredQueryNotFound`, which is a `KeyError`, if there is none."""
        query = self._by_name.get(name)
        if query is None:
            raise StoredQueryNotFound(hint=_suggest_name(name, self._by_name))
        return query

    def __getattr__(self, name: str) -> StoredQuery:
        if name.startswith("_"):  # tools look for special methods, which must not send a request
            raise AttributeError(name)
        query = self._by_name.get(name)
        if query is None:
            raise AttributeError(f"there is no stored query named '{name}'; {_suggest_name(name, self._by_name)}")
        return query

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._ipython_key_completions_()]

    def _ipython_key_completions_(self) -> list[str]:
        """Return the names for completion, or no names if they cannot be read, because completion must not fail."""
        try:
            return self.names()
        except OmnigraphError:
            return []


def write_declaration(name: str, params: Mapping[str, str]) -> str:
    """Write a stored query with its parameters.

    >>> write_declaration("adults", {"min": "int", "team": "string?"})
    'adults($min: int, $team: string?)'
    """
    return f"{name}({', '.join(f'${parameter}: {kind}' for parameter, kind in params.items())})"


def reject_stored_queries() -> NoReturn:
    """Raise the error for the use of `graph.queries` on a graph that is opened from its files."""
    raise UsageError(
        reason="stored queries are on a server, and this graph is opened from its files",
        hint='open the graph by its URL, or read a query from a file, as in `graph.prepare(Path("q.gq"), name="all")`',
    )


def _write_signature(params: Mapping[str, str]) -> inspect.Signature:
    """Return the signature that tools display. A parameter that accepts None may be omitted.

    Parameters whose names Python does not allow, such as `from`, are represented by `**params`.

    >>> _write_signature({"from": "date", "min": "int?"})
    <Signature (*, min: 'int?' = None, **params)>
    """
    parameters = [
        inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            default=None if kind.endswith("?") else inspect.Parameter.empty,
            annotation=kind,
        )
        for name, kind in params.items()
        if name.isidentifier() and not keyword.iskeyword(name)
    ]
    if len(parameters) < len(params):
        rest_name = "params"
        while rest_name in params:
            rest_name += "_"
        parameters.append(inspect.Parameter(rest_name, inspect.Parameter.VAR_KEYWORD))
    return inspect.Signature(parameters)


def _suggest_name(name: object, known_names: Mapping[str, Any]) -> str | None:
    listed = f"the stored queries are {', '.join(sorted(known_names))}" if known_names else "no queries are stored"
    return did_you_mean(str(name), known_names, listed)
