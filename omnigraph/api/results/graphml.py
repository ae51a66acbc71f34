"""Write nodes and edges as a GraphML document.

An attribute is declared with the narrowest GraphML type that fits all of its values. This module receives plain Python
values and does not depend on schemas.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from os import PathLike
from typing import Any, TextIO
from xml.sax.saxutils import escape, quoteattr

Attributes = Mapping[str, Any]
NodeRow = tuple[str, Attributes]
EdgeRow = tuple[str, str, str, Attributes]  # source, target, edge id, attributes

_HEADER = '<?xml version="1.0" encoding="UTF-8"?>\n<graphml xmlns="http://graphml.graphdrawing.org/xmlns">\n'
_INT_LIMIT = 2**31


def write_graphml(path: str | PathLike[str], node_rows: Sequence[NodeRow], edge_rows: Sequence[EdgeRow]) -> None:
    """Write a directed graph to a file. Attributes with the value None are omitted."""
    node_keys = _declare_keys("node", [attributes for _, attributes in node_rows])
    edge_keys = _declare_keys("edge", [attributes for *_, attributes in edge_rows])
    with open(path, "w", encoding="utf-8", newline="\n") as output_file:  # noqa: PTH123 - any path-like object
        output_file.write(_HEADER)
        for domain, keys in (("node", node_keys), ("edge", edge_keys)):
            output_file.writelines(_key_elements(domain, keys))
        output_file.write('<graph edgedefault="directed">\n')
        for node_key, attributes in node_rows:
            _write_element(output_file, f"node id={quoteattr(node_key)}", attributes, node_keys)
        for source, target, edge_id, attributes in edge_rows:
            ends = f"source={quoteattr(source)} target={quoteattr(target)}"
            _write_element(output_file, f"edge id={quoteattr(edge_id)} {ends}", attributes, edge_keys)
        output_file.write("</graph>\n</graphml>\n")


def _declare_keys(domain: str, rows: Sequence[Attributes]) -> dict[str, tuple[str, str]]:
    """Return each attribute's key id and GraphML type."""
    values_by_name: dict[str, list[Any]] = {}
    for attributes in rows:
        for name, value in attributes.items():
            if value is not None:
                values_by_name.setdefault(name, []).append(value)
    return {
        name: (f"{domain}_{position}", _graphml_type(values))
        for position, (name, values) in enumerate(values_by_name.items())
    }


def _graphml_type(values: Sequence[Any]) -> str:
    """Return the narrowest GraphML type that fits the given values.

    >>> _graphml_type([1, 2]), _graphml_type([1, 2.5]), _graphml_type([True]), _graphml_type([1, "x"])
    ('int', 'double', 'boolean', 'string')
    """
    value_types = {type(value) for value in values}
    if value_types == {bool}:
        return "boolean"
    if value_types == {int}:
        return "int" if all(-_INT_LIMIT <= value < _INT_LIMIT for value in values) else "long"
    return "double" if value_types <= {int, float} else "string"


def _key_elements(domain: str, keys: Mapping[str, tuple[str, str]]) -> Iterator[str]:
    for name, (key_id, graphml_type) in keys.items():
        yield f'<key id="{key_id}" for="{domain}" attr.name={quoteattr(name)} attr.type="{graphml_type}"/>\n'


def _write_element(
    output_file: TextIO, opening: str, attributes: Attributes, keys: Mapping[str, tuple[str, str]]
) -> None:
    """Write one node or edge with its attributes."""
    output_file.write(f"<{opening}>\n")
    for name, value in attributes.items():
        if value is not None:
            output_file.write(f'  <data key="{keys[name][0]}">{_spell_value(value)}</data>\n')
    output_file.write(f"</{opening.split(' ', 1)[0]}>\n")


def _spell_value(value: Any) -> str:
    """Return a value as XML text.

    >>> _spell_value(True), _spell_value(["a", "<b>"])
    ('true', '["a", "&lt;b&gt;"]')
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    text = json.dumps(value, default=str, ensure_ascii=False) if isinstance(value, list | dict) else str(value)
    return escape("".join(character for character in text if _is_xml_character(character)))


def _is_xml_character(character: str) -> bool:
    """Return whether XML 1.0 can represent a character. Most control characters cannot be represented."""
    return character in "\t\n\r" or (character >= " " and character not in "\ufffe\uffff")
