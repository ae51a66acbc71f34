"""The rules for names, at their limits."""

import pytest

from omnigraph.errors import AlreadyExists, InputError
from omnigraph.history.name_conflicts import check_disjoint
from omnigraph.values.name_rules import MAX_NAME_BYTES, check_new_ref_name, check_new_stream_name, quote_name

ACCEPTED = [
    "a", "v1.0", "release-2026", "_x", "a__b", "review/a", "a/b/c/d", "1", "2026-12-01", "main/x",
    "x" * MAX_NAME_BYTES, "x/" * 49 + "x" * 4,
    "a.json", "00000000001.json", "con", "a/-b", "x.lock.y",
]  # fmt: skip


@pytest.mark.parametrize("name", ACCEPTED)
@pytest.mark.parametrize("kind", ["branch", "tag"])
def test_branch_and_tag_names_are_validated(name: str, kind: str) -> None:
    assert check_new_ref_name(f" {name}\n", kind) == name


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("x" * (MAX_NAME_BYTES + 1), "it is 201 bytes long, but at most 200 bytes are allowed"),
        ("x/" * 50 + "x", "it is 201 bytes long, but at most 200 bytes are allowed; each '/' counts as 3 bytes"),
        (".", "no part of a name may begin or end with '.'"),
        ("a/.", "no part of a name may begin or end with '.'"),
        (".a", "no part of a name may begin or end with '.'"),
        ("a./b", "no part of a name may begin or end with '.'"),
        ("..", "'..' is not allowed"),
        ("a/../b", "'..' is not allowed"),
        ("x.lock", "no part of a name may end in '.lock'"),
        ("x.lock/y", "no part of a name may end in '.lock'"),
        ("a//b", "use letters"),
        ("a\x00b", "use letters"),
        ("caf\u00e9", "use letters"),
        ("\ud800", "use letters"),
        ("a b", "use letters"),
        ("a%2Fb", "use letters"),
        ("-a", "may not begin with '-'"),
        ("__x", "reserved"),
        ("Main", "'main' is reserved"),
        ("head", "'HEAD' is reserved"),
        ("0000000001.json", "names of this form are reserved for files in a graph"),
        ("01J8ZC9Q3M0000000000000000", "it looks like a commit id"),
    ],
)
def test_name_error_states_the_reason(name: str, fault: str) -> None:
    with pytest.raises(InputError, match="cannot be used as a tag name: ") as refused:
        check_new_ref_name(name, "tag")
    assert fault in refused.value.message
    assert fault in (refused.value.reason or "")


@pytest.mark.parametrize("name", ["s", "orders of 2026", "caf\u00e9", ".", "a/b", "\u00e9" * 100])
def test_stream_names_are_validated(name: str) -> None:
    assert check_new_stream_name(name) == name


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("", "must not be empty"),
        (" \t", "must not be empty"),
        (" a", "begins or ends with whitespace"),
        ("e\u0301", "Normalization Form C"),
        ("a\x1bb", "printable"),
        ("\ud800", "printable"),
        ("\u00e9" * 101, "it is 202 bytes long"),
    ],
)
def test_stream_name_error_states_the_reason(name: str, fault: str) -> None:
    with pytest.raises(InputError, match=fault):
        check_new_stream_name(name)


def test_long_name_is_abbreviated_in_errors() -> None:
    assert quote_name("x" * 80) == f"'{'x' * 80}'"
    assert quote_name("x" * 81) == f"'{'x' * 80}…' (81 characters)"


@pytest.mark.parametrize("name", ["REVIEW", "Review/a/b", "rEview/A"])
def test_branch_names_must_differ_in_more_than_case(name: str) -> None:
    with pytest.raises(AlreadyExists, match="review/a"):
        check_disjoint(name, ["main", "review/a"])
