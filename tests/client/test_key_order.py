"""The client compiles a schema with the order of key members that the server sends."""

from omnigraph.client.handle import read_schema_ir
from omnigraph.lang.schema.ir import ordered_key_columns

SOURCE = """
node Room { house: String  level: I32  number: I32  @key(house, level, number) }
edge Next: Room -> Room { at: Date  by: String  @key(src, dst, at, by) }
"""


def test_order_of_the_server_is_used() -> None:
    node = {"kind": "node", "type": "Room", "columns": ["number", "house", "level"]}
    edge = {"kind": "edge", "type": "Next", "columns": ["src", "dst", "by", "at"]}
    ir = read_schema_ir({"schema_source": SOURCE, "keys": [node, edge]})
    assert ordered_key_columns(ir, "Room") == ("number", "house", "level")
    assert ordered_key_columns(ir, "Next", "edge") == ("src", "dst", "by", "at")


def test_order_of_a_new_graph_is_used_if_an_older_server_sends_none() -> None:
    ir = read_schema_ir({"schema_source": SOURCE})
    assert ordered_key_columns(ir, "Room") == ("house", "level", "number")
    assert ordered_key_columns(ir, "Next", "edge") == ("src", "dst", "at", "by")
