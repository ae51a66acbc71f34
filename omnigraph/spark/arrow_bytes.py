"""Serialize Arrow tables to bytes, so that a whole table fits in one Spark cell without a Spark schema.

Tasks and the driver use this module only for DataFrame cells.
"""

import pyarrow as pa


def pack_table(table: pa.Table) -> bytes:
    """Serialize a table to compressed bytes.

    >>> unpack_table(pack_table(pa.table({"x": [1, 2]})))["x"].to_pylist()
    [1, 2]
    """
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.ipc.new_stream(sink, table.schema, options=options) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def unpack_table(data: bytes) -> pa.Table:
    """Read a table from bytes created by `pack_table`."""
    return pa.ipc.open_stream(data).read_all()
