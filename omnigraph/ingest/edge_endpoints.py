"""The names of an edge's endpoints in input: `from` and `to`, or `src` and `dst`.

Both spellings are accepted wherever a record, a column or a file names an edge's endpoints. Naming the same endpoint
twice is an error.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from omnigraph.errors import InputError

ENDPOINT_COLUMNS = {"from": "src", "to": "dst"}
"""The column that stores each endpoint."""

_MEMBERS = {stored_name: member_name for member_name, stored_name in ENDPOINT_COLUMNS.items()}


def reject_repeated_endpoints(names: Iterable[str]) -> None:
    """Raise `InputError` if the names include both spellings of an endpoint.

    >>> reject_repeated_endpoints(["from", "dst", "since"])
    """
    given_names = set(names)
    for member_name, stored_name in ENDPOINT_COLUMNS.items():
        if {member_name, stored_name} <= given_names:
            raise InputError(
                reason=f"'{member_name}' and '{stored_name}' name the same endpoint, but both are present",
                member=member_name,
                hint=f"specify either '{member_name}' or '{stored_name}'",
            )


def with_stored_endpoints(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return a record in which the endpoints are named `src` and `dst`.

    >>> with_stored_endpoints({"from": "a", "dst": "b"})
    {'src': 'a', 'dst': 'b'}
    """
    reject_repeated_endpoints(record)
    return {ENDPOINT_COLUMNS.get(member_name, member_name): value for member_name, value in record.items()}


def with_endpoint_members(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return a record in which the endpoints are named `from` and `to`.

    >>> with_endpoint_members({"src": "a", "to": "b"})
    {'from': 'a', 'to': 'b'}
    """
    reject_repeated_endpoints(record)
    return {_MEMBERS.get(member_name, member_name): value for member_name, value in record.items()}
