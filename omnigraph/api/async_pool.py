"""`AsyncQueryPool`, a query pool whose methods are coroutines."""

from collections.abc import AsyncIterator, Iterable, Mapping
from typing import Any, Self

from omnigraph.api.builders.prepared_queries import QuerySource
from omnigraph.api.queries import Params, combine_arguments
from omnigraph.api.query_pool import QueryPool
from omnigraph.api.results.result import Result
from omnigraph.api.threads import AsyncFacet, iterate, run
from omnigraph.history.revisions import Revision


class AsyncQueryPool(AsyncFacet[QueryPool]):
    """Processes that run queries in parallel; see `Graph.pool`. `sync` is the same pool with blocking methods."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    @property
    def process_ids(self) -> tuple[int, ...]:
        """The ids of the processes."""
        return self.sync.process_ids

    async def query(  # noqa: PLR0913 - all but the first are keywords
        self,
        source: QuerySource,
        /,
        *,
        name: str | None = None,
        params: Params = None,
        branch: str | None = None,
        at: Revision | None = None,
        timeout: float | None = None,
        assume_utc: bool = False,
        **values: Any,
    ) -> Result:
        """Run a query in one of the processes; see `QueryPool.query`."""
        options: dict[str, Any] = {"name": name, "branch": branch, "at": at, "timeout": timeout}
        options |= {"assume_utc": assume_utc, "params": combine_arguments(params, values)}
        return await run(self.sync.query, source, **options)

    async def map(
        self, source: QuerySource, params: Iterable[Mapping[str, Any]], /, *, name: str | None = None, **options: Any
    ) -> AsyncIterator[Result]:
        """Run one query for each set of parameters, and yield the results in the same order; see `QueryPool.map`."""
        async for result in iterate(self.sync.map(source, params, name=name, **options)):
            yield result

    async def close(self) -> None:
        """End all processes."""
        await run(self.sync.close)
