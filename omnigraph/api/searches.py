"""`graph.search`: find nodes by text or by a vector, through a query with `search`, `bm25`, `nearest` and `rrf`."""

from collections.abc import Sequence

from omnigraph.api.builders.search_text import PropertyNames, SearchTerms, build_search
from omnigraph.api.handle import Handle
from omnigraph.api.queries import QueryCall, run_query
from omnigraph.api.results.result import Result
from omnigraph.history.revisions import Revision


def search(  # noqa: PLR0913 - all but two are keywords
    handle: Handle,
    type_name: str,
    /,
    *,
    text: str | None = None,
    vector: Sequence[float] | None = None,
    k: int = 10,
    properties: PropertyNames = None,
    branch: str | None = None,
    at: Revision | None = None,
    timeout: float | None = None,
) -> Result:
    """Return the `k` best matches among the nodes of a type, with their scores.

    With only `text`, the nodes must contain one of its tokens and are ranked by BM25, higher scores first. With only
    `vector`, the nearest vectors come first, and the score is the distance. With `text` and `vector`, `rrf` combines
    the two rankings, and a node need not contain a token. The rows contain the id, all properties except blobs and
    vectors, and `score`, which is called `search_score` if the type has a property `score`. To add conditions or
    traversals, use `graph.query` with `search`, `bm25`, `nearest` and `rrf`.

    By default, the search uses the type's only property with a full-text index (or its only String property outside the
    key) and its only Vector property. `properties` selects others. The result does not depend on whether an index
    exists.

    >>> from omnigraph import testing
    >>> with testing.graph("node Book { isbn: String @key  summary: String }") as graph:
    ...     _ = graph.insert("Book", {"isbn": "1", "summary": "A ship"}, {"isbn": "2", "summary": "Ships, and a ship"})
    ...     graph.search("Book", text="ships", properties="summary").scalars("isbn")
    ['2', '1']

    Raises `InputError` for an unknown type or property, and if several properties could be searched.
    """
    request = SearchTerms(type_name, text, vector, k, properties)
    target = handle.for_read(branch, at)
    query_text, arguments = build_search(target.latest_snapshot().schema.ir.catalog, request)
    return run_query(target, QueryCall(query_text, None, arguments, timeout))
