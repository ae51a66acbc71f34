"""Requirements that must hold on the base whenever a plan is published.

Each requirement describes data that was read and, after a conflict, checks whether the data is still the same. If a
caller's requirement fails, the failure is final. If a plan's requirement fails, a new plan is prepared.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from omnigraph.errors import KeyConflict, PreconditionFailed, ReadSetConflict, VersionConflict
from omnigraph.publish.write_txn import WriteTxn
from omnigraph.storage.find_rows import find, json_values, rows_digest
from omnigraph.storage.scan import find_rows
from omnigraph.values.table_key import TableKey


class Requirement(Protocol):
    """A condition that must hold on the base when a write is published."""

    def to_json(self) -> list[Any]:
        """Return the requirement's kind and arguments, so that another process can check it after a crash."""

    def check(self, txn: WriteTxn) -> None:
        """Raise a typed conflict if the requirement does not hold on the base of `txn`."""


@dataclass(frozen=True, slots=True)
class SameContent:
    """Requires that a table's rows have not changed.

    Table maintenance does not violate this requirement.
    """

    table_key: TableKey
    content_id: str
    version: int

    def to_json(self) -> list[Any]:
        """Return the requirement as JSON data."""
        return ["same_content", self.table_key, self.content_id, self.version]

    def check(self, txn: WriteTxn) -> None:
        """Compare content ids, never version numbers, because maintenance also changes version numbers."""
        current_entry = txn.table_entry(self.table_key)
        if current_entry is None or current_entry.content_id != self.content_id:
            actual_version = current_entry.version if current_entry else None
            raise VersionConflict(type_key=self.table_key, expected=self.version, actual=actual_version)


@dataclass(frozen=True, slots=True)
class SameVersion:
    """Requires a table to still be at the exact version that was read.

    Table maintenance violates this requirement. Use this requirement for a write that replaces the table with its own
    version and would otherwise undo all changes published in the meantime.
    """

    table_key: TableKey
    content_id: str
    lance_version: int
    version: int

    def to_json(self) -> list[Any]:
        """Return the requirement as JSON data, with the Lance version as a string because it can exceed 2^63."""
        return ["same_version", self.table_key, self.content_id, str(self.lance_version), self.version]

    def check(self, txn: WriteTxn) -> None:
        """Check that the content id and the Lance version are unchanged."""
        current_entry = txn.table_entry(self.table_key)
        expected_version = (self.content_id, int(self.lance_version))
        if current_entry is None or (current_entry.content_id, current_entry.lance_version) != expected_version:
            actual_version = current_entry.version if current_entry else None
            raise VersionConflict(type_key=self.table_key, expected=self.version, actual=actual_version)


@dataclass(frozen=True, slots=True)
class SameHead:
    """Requires that the branch has no new commit."""

    commit_id: str

    def to_json(self) -> list[Any]:
        """Return the requirement as JSON data."""
        return ["same_head", self.commit_id]

    def check(self, txn: WriteTxn) -> None:
        """Check that the head commit is unchanged."""
        current_head = txn.base.state.head.commit_id
        if current_head != self.commit_id:
            raise ReadSetConflict(member="graph_head", expected=self.commit_id, actual=current_head)


@dataclass(frozen=True, slots=True)
class SameSchema:
    """Requires that the schema is still the one that the write was planned for."""

    schema_hash: str

    def to_json(self) -> list[Any]:
        """Return the requirement as JSON data."""
        return ["same_schema", self.schema_hash]

    def check(self, txn: WriteTxn) -> None:
        """Check that the schema hash is unchanged."""
        current_hash = txn.base.state.schema.hash
        if current_hash != self.schema_hash:
            raise ReadSetConflict(member="schema", expected=self.schema_hash, actual=current_hash)


@dataclass(frozen=True, slots=True)
class ExpectedHead:
    """Requires that the head is still the commit that the caller based its decision on."""

    commit_id: str

    def to_json(self) -> list[Any]:
        """Return the requirement as JSON data."""
        return ["head_was", self.commit_id]

    def check(self, txn: WriteTxn) -> None:
        """Check that the head commit is unchanged.

        A mismatch is final, because a retry would ignore the caller's condition.
        """
        current_head = txn.base.state.head.commit_id
        if current_head != self.commit_id:
            raise PreconditionFailed(expected=self.commit_id, actual=current_head)


@dataclass(frozen=True, slots=True)
class AbsentIds:
    """Requires that no entity with any of the given ids exists, for writes that depend on the absence of rows."""

    table_key: TableKey
    ids: tuple[str, ...]

    def to_json(self) -> list[Any]:
        """Return the requirement as JSON data."""
        return ["absent_ids", self.table_key, list(self.ids)]

    def check(self, txn: WriteTxn) -> None:
        """Look up the ids and raise `KeyConflict` for the first id that exists."""
        existing_rows = find_rows(txn.table(self.table_key), "id", self.ids, ["id"])
        if existing_rows.num_rows:
            raise KeyConflict(type_key=self.table_key, entity_id=existing_rows["id"][0].as_py())


@dataclass(frozen=True, slots=True, eq=False)
class SameLookupResult:
    """Requires that a lookup, for example by key or endpoint, still returns the same rows.

    `lookup_values` contains the values to look up in each column, and `expected_rows` is the expected result or its
    digest.
    """

    table_key: TableKey
    content_id: str
    lookup_values: tuple[tuple[str, Any], ...]
    expected_rows: Any
    column_names: tuple[str, ...] = ()

    def to_json(self) -> list[Any]:
        """Return the requirement as JSON data."""
        encoded_lookup = [[column_name, json_values(values)] for column_name, values in self.lookup_values]
        result_columns = list(self.column_names or self.expected_rows.column_names)
        return [
            "same_answer",
            self.table_key,
            self.content_id,
            encoded_lookup,
            rows_digest(self.expected_rows),
            result_columns,
        ]

    def check(self, txn: WriteTxn) -> None:
        """If the table has changed, repeat the lookup and compare the results."""
        current_entry = txn.table_entry(self.table_key)
        if current_entry is not None and current_entry.content_id == self.content_id:
            return
        result_columns = self.column_names or tuple(self.expected_rows.column_names)
        current_rows = find(txn.table(self.table_key), dict(self.lookup_values), result_columns)
        if rows_digest(current_rows) != rows_digest(self.expected_rows):
            raise ReadSetConflict(member=self.table_key, expected=self.content_id)


@dataclass(frozen=True, slots=True)
class AbsentTable:
    """Requires that a table still does not exist."""

    table_key: TableKey

    def to_json(self) -> list[Any]:
        """Return the requirement as JSON data."""
        return ["absent_table", self.table_key]

    def check(self, txn: WriteTxn) -> None:
        """Raise `VersionConflict` if the table exists."""
        existing_entry = txn.table_entry(self.table_key)
        if existing_entry is not None:
            raise VersionConflict(type_key=self.table_key, expected=None, actual=existing_entry.version)


def check_requirements(requirements: Sequence[Requirement], txn: WriteTxn) -> None:
    """Check all requirements on a base, and raise the first conflict."""
    for requirement in requirements:
        requirement.check(txn)
