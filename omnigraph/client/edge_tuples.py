"""Convert the edges of `connect_nodes` to JSON arrays.

The schema is read only if an edge contains a value that JSON cannot express.
"""

from collections.abc import Callable, Iterable
from functools import cache
from typing import Any

from omnigraph.api.builders.mutation_text import require_edge_tuple
from omnigraph.lang.schema.ir import SchemaIR

from .entity_keys import encode_node_key
from .property_values import PropertyTypes, encode_record, is_exact_json, record_types


def encode_edges(read_ir: Callable[[], SchemaIR], edge_type: str, edge_tuples: Iterable[Any]) -> list[Any]:
    """Return edges, given as `(from, to)` or `(from, to, properties)`, as JSON arrays."""
    find_ir = cache(read_ir)
    return [_encode_edge(find_ir, edge_type, require_edge_tuple(edge_tuple)) for edge_tuple in edge_tuples]


def _encode_edge(find_ir: Callable[[], SchemaIR], edge_type: str, edge_tuple: tuple[Any, ...]) -> list[Any]:
    if is_exact_json(edge_tuple):
        return list(edge_tuple)
    ir = find_ir()
    edge = ir.catalog.edge_ignoring_case(edge_type)
    end_types = (None, None) if edge is None else (ir.catalog.node(edge.source), ir.catalog.node(edge.target))
    ends = [encode_node_key(ir, end_type, key) for end_type, key in zip(end_types, edge_tuple[:2], strict=True)]

    def find_types() -> PropertyTypes:
        return record_types(edge)

    return [*ends, *(encode_record(find_types, properties) for properties in edge_tuple[2:])]
