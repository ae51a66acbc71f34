"""Propose a schema for samples: properties, keys, and the node types that edges connect.

Each guess has a comment in the schema text. A table with two endpoint columns becomes an edge type if their values are
keys of proposed node types; every other table becomes a node type.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.lang.schema.names import RESERVED_EDGE_NAMES, RESERVED_ROW_COLUMNS
from omnigraph.lang.schema.propose.proposal import ProposedProperty, ProposedType, print_types, property_name
from omnigraph.values import ScalarType

from .column_types import ColumnType, infer_type
from .samples import Sample, read_samples

_ENDPOINT_PAIRS = (("from", "to"), ("src", "dst"), ("source", "target"))
_KEY_NAMES = ("key", "uuid", "guid", "code", "slug", "isbn", "doi", "orcid", "email", "name", "title")
_KEY_SUFFIXES = ("_id", "_key", "_code", "_uuid")
_KEY_TYPES = (ScalarType.STRING, ScalarType.I32, ScalarType.I64, ScalarType.U32, ScalarType.U64)


@dataclass(frozen=True, slots=True)
class _Column:
    """A sample's column: its name in the data, its property name, and the type that its values suggest."""

    name: str
    property_name: str
    values: Any
    column_type: ColumnType


@dataclass(frozen=True, slots=True)
class _NodeTable:
    """A node type, and the column that identifies its nodes (None if no column does)."""

    sample: Sample
    columns: tuple[_Column, ...]
    key: _Column | None

    def key_values(self) -> set[str]:
        """Return the node ids as text."""
        values = [] if self.key is None else self.key.values.drop_null().to_pylist()
        return set(map(str, values))


def propose_schema_text(data: Any, max_rows: int) -> str:
    """Return schema text for data in any of the forms that `Schema.infer` accepts."""
    samples = read_samples(data, max_rows)
    endpoint_samples = [sample for sample in samples if _endpoint_columns(sample) is not None]
    nodes = [_node_table(sample) for sample in samples if _endpoint_columns(sample) is None]
    edges = {sample.type_name: _propose_edge(sample, nodes) for sample in endpoint_samples}
    nodes += [_node_table(sample) for sample in endpoint_samples if edges[sample.type_name] is None]
    proposed_nodes = [_propose_node(node) for node in nodes]
    return print_types([*proposed_nodes, *(edge for edge in edges.values() if edge is not None)])


def _endpoint_columns(sample: Sample) -> tuple[str, str] | None:
    if sample.kind == "node":
        return None
    names = {name.lower(): name for name in sample.table.column_names}
    pair = next((pair for pair in _ENDPOINT_PAIRS if set(pair) <= set(names)), None)
    return None if pair is None else (names[pair[0]], names[pair[1]])


def _node_table(sample: Sample) -> _NodeTable:
    columns = tuple(_read_columns(sample, sample.table.column_names))
    return _NodeTable(sample, columns, _find_key(sample, columns))


def _read_columns(sample: Sample, column_names: Sequence[str]) -> Iterator[_Column]:
    used_names: set[str] = set()
    for name in column_names:
        unique_name = base_name = _valid_name(name, sample)
        suffix = 1
        while unique_name in used_names:
            suffix += 1
            unique_name = f"{base_name}_{suffix}"
        used_names.add(unique_name)
        values = _decode_dictionary(sample.table[name])
        yield _Column(name, unique_name, values, infer_type(values, sample.origin))


def _decode_dictionary(column: Any) -> Any:
    return column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column


def _valid_name(column_name: str, sample: Sample) -> str:
    """Return the property name for a column; reserved names are prefixed with the type name."""
    name = property_name(column_name)
    is_reserved = name == "id" or name in RESERVED_ROW_COLUMNS
    if is_reserved or (sample.kind == "edge" and name in RESERVED_EDGE_NAMES):
        return f"{property_name(sample.type_name)}_{name.lstrip('_')}"
    return name


def _find_key(sample: Sample, columns: Sequence[_Column]) -> _Column | None:
    """Return the unique column that most likely identifies a node: an id or a code if possible, or else any text."""
    candidates = [
        (rank, column)
        for column in columns
        if _is_unique(column) and (rank := _key_rank(column, sample, columns)) is not None
    ]
    return min(candidates, key=lambda candidate: candidate[0], default=(0, None))[1]


def _is_unique(column: _Column) -> bool:
    property_type = column.column_type.type
    if property_type is None or property_type.is_list or property_type.scalar not in _KEY_TYPES:
        return False
    row_count = len(column.values)
    return row_count > 0 and column.values.null_count == 0 and pc.count_distinct(column.values).as_py() == row_count


def _key_rank(column: _Column, sample: Sample, columns: Sequence[_Column]) -> int | None:
    name, own_prefix = column.property_name.lower(), sample.type_name.lower()
    if column.name.lower() == "id" or name in (f"{own_prefix}_id", f"{own_prefix}id"):
        return 0
    if name in _KEY_NAMES:
        return 1 + _KEY_NAMES.index(name)
    if name.endswith(_KEY_SUFFIXES):
        return 20
    if len(column.values) < 2:
        return None  # a single value is always unique
    is_text = column.column_type.type is not None and column.column_type.type.scalar is ScalarType.STRING
    if is_text:
        return 30
    return 40 if column is columns[0] else None


def _propose_node(node: _NodeTable) -> ProposedType:
    is_id = node.key is not None and _is_node_id(node.key)
    comments = [_row_comment(node.sample)] if not node.sample.is_complete else []
    if is_id:
        comments.append("the `id` column contains the node ids, so the type needs no key")
    elif node.key is None:
        comments.append("no column identifies the nodes: ids are generated on load")
    properties = [
        _propose_property(column, node.sample, is_key=column is node.key)
        for column in node.columns
        if column.column_type.type is not None and not (is_id and column is node.key)
    ]
    return ProposedType(
        node.sample.type_name, tuple(properties), comments=(*comments, *_skipped_comments(node.columns))
    )


def _is_node_id(column: _Column) -> bool:
    """Return whether a column can be loaded as node ids, that is, whether it is named `id` and contains text."""
    return column.name == "id" and pa.types.is_string(column.values.type)


def _row_comment(sample: Sample) -> str:
    return f"based only on the first {_count_rows(sample.table.num_rows)}"


def _count_rows(row_count: int) -> str:
    return f"{row_count} row{'s'[: row_count != 1]}"


def _skipped_comments(columns: Sequence[_Column]) -> list[str]:
    return [
        f'the column "{column.name}" is omitted: {column.column_type.comment}'
        for column in columns
        if column.column_type.type is None
    ]


def _propose_property(column: _Column, sample: Sample, *, is_key: bool = False) -> ProposedProperty:
    property_type = column.column_type.type
    if property_type is None:
        raise ValueError(f'the column "{column.name}" has no type')
    notes = [f"unique in {_count_rows(len(column.values))}"] if is_key else []
    if column.property_name != column.name:
        notes.append(f'map the column "{column.name}" to this property when loading')
    if column.name in sample.mixed_columns:
        notes.append("mixed value types")
    if column.column_type.comment and not is_key:
        notes.append(column.column_type.comment)
    return ProposedProperty(column.property_name, property_type, ("@key",) if is_key else (), "; ".join(notes))


def _propose_edge(sample: Sample, nodes: Sequence[_NodeTable]) -> ProposedType | None:
    """Return an edge type, or None if the endpoint columns do not contain keys of node types."""
    endpoint_names = _endpoint_columns(sample)
    if endpoint_names is None:
        return None
    matches = [_match_endpoint(sample, name, nodes) for name in endpoint_names]
    if any(match is None for match in matches):
        return None
    (source, source_note), (target, target_note) = (match for match in matches if match is not None)
    others = [name for name in sample.table.column_names if name not in endpoint_names]
    edge_sample = Sample(sample.type_name, sample.table, sample.origin, True, "edge", sample.mixed_columns)
    columns = [column for column in _read_columns(edge_sample, others) if column.name != "id"]
    properties = [_propose_property(column, sample) for column in columns if column.column_type.type is not None]
    comments = [] if sample.is_complete else [_row_comment(sample)]
    comments += [f"{source_note}; {target_note}", *_endpoint_comments(sample, endpoint_names)]
    has_unique_pairs = _are_pairs_unique(sample, endpoint_names)
    members = ("@key(src, dst)",) if has_unique_pairs else ()
    comments += ["each pair of nodes occurs once, so the pair is the key"] if has_unique_pairs else []
    return ProposedType(
        sample.type_name,
        tuple(properties),
        source,
        target,
        members=members,
        comments=(*comments, *_skipped_comments(columns)),
    )


def _match_endpoint(sample: Sample, column_name: str, nodes: Sequence[_NodeTable]) -> tuple[str, str] | None:
    """Return the node type whose keys include the most values, with a comment, or None if no value is a key."""
    values = set(map(str, sample.table[column_name].drop_null().unique().to_pylist()))
    counts = [(len(values & node.key_values()), node.sample.type_name) for node in nodes]
    best_count, best_type = max(counts, key=lambda match: match[0], default=(0, ""))
    if not best_count:
        return None
    share = "all" if best_count == len(values) else f"{best_count} of {len(values)}"
    return best_type, f"{column_name}: {share} values are {best_type} keys"


def _endpoint_comments(sample: Sample, endpoint_names: tuple[str, str]) -> Iterator[str]:
    for name, stored_name in zip(endpoint_names, ("from", "to"), strict=True):
        if name.lower() in ("source", "target"):
            yield f'map the column "{name}" to "{stored_name}" when loading'
        if sample.origin != "csv" and not pa.types.is_string(sample.table[name].type):
            yield f'the column "{name}" has the type {sample.table[name].type}: convert it to text before loading'


def _are_pairs_unique(sample: Sample, endpoint_names: tuple[str, str]) -> bool:
    pairs = sample.table.select(list(endpoint_names)).group_by(list(endpoint_names)).aggregate([])
    return bool(pairs.num_rows == sample.table.num_rows)
