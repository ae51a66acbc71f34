"""Transactions on a server: several writes that are sent together and become one commit.

The server keeps no state between requests. A read inside a transaction sends the steps so far without publishing them.
At the end, all steps are sent once more with digests of the query results, so the commit fails if a result has changed.
The ids that earlier requests generated are sent as well, so that the commit uses the same ids.
"""

import threading
from base64 import b64decode
from collections.abc import Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Self

import pyarrow as pa

from omnigraph.api.builders.entity_sets import EdgeSet, NodeSet, edge_set, node_set
from omnigraph.api.builders.mutation_text import build_delete, build_update, normalize_records, suggest_upsert
from omnigraph.api.builders.prepared_queries import QuerySource
from omnigraph.api.queries import Params, combine_arguments
from omnigraph.api.results.result import Result
from omnigraph.api.write_options import WriteOptions
from omnigraph.errors import UsageError
from omnigraph.lang.schema.catalog import Catalog, EdgeType, NodeType
from omnigraph.lang.schema.ir import SchemaIR
from omnigraph.records.cached_property import cached_property
from omnigraph.values.name_rules import require_text

from .answers import Document
from .blobs import BlobFacts, RemoteBlob, stored_blob, written_blob
from .edge_tuples import encode_edges
from .handle import RemoteHandle
from .load_input import iter_records
from .new_ids import add_edge_ids, add_line_id, add_record_ids
from .property_values import encode_arguments, encode_typed_records, is_exact_json, record_types
from .query_requests import build_query_body, read_source, with_source
from .wire_values import encode_value
from .writes import check_write_options, post_write, send_write, write_branch

if TYPE_CHECKING:
    from omnigraph.api.results.receipt import Receipt

_ACTION = "starting a transaction"


class RemoteTransaction:
    """Several writes that become one commit at the end of the `with` block. `receipt` describes the commit."""

    def __init__(self, handle: RemoteHandle, branch: str | None, options: WriteOptions) -> None:
        handle.require_writable(_ACTION)
        check_write_options(handle, options)
        self._handle, self._branch, self._options = handle, write_branch(handle, branch), options
        self._steps: list[Document] = []
        self._generated_ids: list[str] = []
        self._is_open = False
        self._thread = threading.get_ident()
        self.receipt: Receipt | None = None

    def __enter__(self) -> Self:
        if self._is_open or self.receipt is not None:
            raise UsageError(reason="a transaction object can be used only once")
        self._is_open = True
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._require_open()
        self._is_open = False
        if kind is None:
            body = {"operations": self._steps, "generated_ids": self._generated_ids or None}
            self.receipt = send_write(self._handle, ("transaction",), body, self._branch, self._options, action=_ACTION)

    def mutate(self, source: QuerySource, /, *, name: str | None = None, params: Params = None, **values: Any) -> None:
        """Run a mutation."""
        arguments = combine_arguments(params, values)
        text = read_source(source, arguments)
        with with_source(text):
            self._add({"op": "mutate", **build_query_body(text, name, arguments)})

    def insert(self, type_name: str, /, *records: Any) -> None:
        """Add entities."""
        self._add_records("insert", type_name, records)

    def upsert(self, type_name: str, /, *records: Any) -> None:
        """Add entities, or update those with the same key or `id`."""
        self._add_records("upsert", type_name, records)

    def patch(self, type_name: str, /, *records: Any) -> None:
        """Update existing entities."""
        self._add_records("patch", type_name, records)

    def connect_nodes(self, edge_type: str, ends: Iterable[tuple[Any, ...]], /) -> None:
        """Add edges."""
        edges = encode_edges(lambda: self._ir, require_text(edge_type, "type"), ends)
        edges = add_edge_ids(self._catalog.edge(edge_type), edges)
        with suggest_upsert():
            self._add({"op": "connect", "type": edge_type, "records": edges})

    def update(
        self, type_name: str, /, *, where: str, set: Mapping[str, Any], params: Params = None, **values: Any
    ) -> None:
        """Set properties on the entities that match a predicate."""
        arguments, new_values = combine_arguments(params, values), dict(set)
        if not is_exact_json([arguments, new_values]):
            text, typed = build_update(self._catalog, type_name, where, set, arguments)
            encoded = encode_arguments(text, None, typed)
            new_values = {name: encoded.pop(f"p{number}") for number, name in enumerate(new_values)}
            arguments = encoded
        self._add(
            {"op": "update", "type": type_name, "where": where, "set": new_values, "params": dict(arguments) or None}
        )

    def delete(self, type_name: str, /, *, where: str, params: Params = None, **values: Any) -> None:
        """Delete edges, or nodes together with their edges."""
        arguments = combine_arguments(params, values)
        if not is_exact_json(dict(arguments)):
            text, typed = build_delete(self._catalog, type_name, where, arguments)
            arguments = encode_arguments(text, None, typed)
        self._add({"op": "delete", "type": type_name, "where": where, "params": dict(arguments) or None})

    def load(self, data: Any, *, mode: str) -> None:
        """Load NDJSON (a path, a file or bytes), records, or records by type; see `Graph.load`."""
        if isinstance(data, Mapping):
            self._add(*(self._load_step(type_name, records, mode) for type_name, records in data.items()))
            return
        lines = (add_line_id(line, self._catalog) for line in iter_records(data, lambda: self._catalog))
        self._add({"op": "load", "data": b"".join(lines).decode("utf-8", "surrogateescape"), "mode": mode})

    def _load_step(self, type_name: str, records: Any, mode: str) -> Document:
        rows = add_record_ids(self._find_type(type_name), self._encode_records(type_name, records))
        return {"op": "load", "type": type_name, "records": rows, "mode": mode}

    def query(self, source: QuerySource, /, *, name: str | None = None, params: Params = None, **values: Any) -> Result:
        """Run a query that sees this transaction's earlier writes."""
        arguments = combine_arguments(params, values)
        text = read_source(source, arguments)
        step = {"op": "query", **build_query_body(text, name, arguments)}
        with with_source(text):
            answer = self._preview([*self._steps, step])["results"][-1]
        self._steps.append({**step, "digest": answer["digest"]})
        with pa.ipc.open_stream(pa.BufferReader(b64decode(answer["arrow"]))) as reader:
            table = reader.read_all()
        return Result(table, params=dict(arguments), target={"branch": self._branch, "snapshot": None})

    def blob(self, type_name: str, key: Any, property_name: str, /, *, kind: str | None = None) -> RemoteBlob:
        """Open a blob, including one that this transaction has written; see `Transaction.blob`."""
        step: Document = {"op": "blob", "type": type_name, "key": encode_value(key), "property": property_name}
        step = step if kind is None else {**step, "kind": kind}
        answer = self._preview([*self._steps, step])["results"][-1]
        self._steps.append({**step, "digest": answer["digest"]})
        document = answer["blob"]
        facts = BlobFacts(
            document["kind"],
            type_name,
            document["id"],
            property_name,
            document["size"],
            answer["digest"],
            document["media_type"],
            document["graph_commit_id"],
        )
        content = document.get("content")
        return stored_blob(self._handle, facts) if content is None else written_blob(facts, b64decode(content))

    def nodes(self, type_name: str, /) -> NodeSet:
        """Return the nodes of a type, including those that the transaction added."""
        return node_set(partial(self._run_text), self._catalog, type_name)

    def edges(self, type_name: str, /) -> EdgeSet:
        """Return the edges of a type, including those that the transaction added."""
        return edge_set(partial(self._run_text), self._catalog, type_name)

    def _run_text(self, text: str, arguments: Mapping[str, Any]) -> Result:
        return self.query(text, params=arguments)

    @cached_property
    def _ir(self) -> SchemaIR:
        return self._handle.for_read(self._branch, None).schema_ir()

    @property
    def _catalog(self) -> Catalog:
        return self._ir.catalog

    def _find_type(self, type_name: str) -> NodeType | EdgeType | None:
        return self._catalog.node(type_name) or self._catalog.edge(type_name)

    def _add_records(self, verb: str, type_name: str, records: tuple[Any, ...]) -> None:
        rows = self._encode_records(require_text(type_name, "type"), normalize_records(records))
        if verb != "patch":
            rows = add_record_ids(self._find_type(require_text(type_name, "type")), rows)
        with suggest_upsert():
            self._add({"op": verb, "type": require_text(type_name, "type"), "records": rows})

    def _encode_records(self, type_name: str, records: Any) -> list[Any]:
        return encode_typed_records(lambda: record_types(self._find_type(type_name)), records)

    def _add(self, *new_steps: Document) -> None:
        """Add steps, after the server has checked them together with the earlier steps."""
        self._require_open()
        steps = [{name: value for name, value in step.items() if value is not None} for step in new_steps]
        self._preview([*self._steps, *steps])
        self._steps += steps

    def _preview(self, steps: list[Document]) -> Document:
        """Run steps without publishing them. With the key, the server recognizes an already published transaction."""
        self._require_open()
        body = {"operations": steps, "generated_ids": self._generated_ids or None, "rollback": True, "arrow": True}
        options = WriteOptions(idempotency_key=self._options.idempotency_key)
        answer, _ = post_write(self._handle, ("transaction",), body, self._branch, options, action=_ACTION)
        self._generated_ids = answer.get("generated_ids", [])
        return answer

    def _require_open(self) -> None:
        if not self._is_open:
            raise UsageError(reason="the transaction is not open; use it in a `with` block")
        if self._thread != threading.get_ident():
            raise UsageError(reason="a transaction can only be used in the thread that began it")
