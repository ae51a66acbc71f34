"""`record` builds what `dataclass(frozen=True, slots=True)` builds, in less time."""

import copy
import pickle
from dataclasses import FrozenInstanceError, asdict, dataclass, field, fields, replace
from functools import cached_property
from typing import Any

import pytest

from omnigraph.records.frozen import record


@record
class Mine:
    a: int
    b: tuple[int, ...] = ()
    c: list[int] = field(default_factory=list, compare=False)
    d: str = field(default="d", init=False)
    e: int = field(default=1, repr=False)


@dataclass(frozen=True, slots=True)
class Stock:
    a: int
    b: tuple[int, ...] = ()
    c: list[int] = field(default_factory=list, compare=False)
    d: str = field(default="d", init=False)
    e: int = field(default=1, repr=False)


CALLS: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
    ((1,), {}),
    ((1, (2,)), {"c": [3]}),
    ((), {"a": 1, "e": 5}),
    ((), {}),
    ((1,), {"d": "x"}),
    ((1,), {"z": 1}),
]


def outcome(made: type[Any], arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
    try:
        one = made(*arguments, **named)
    except TypeError:
        return "refused"
    return asdict(one), repr(one).partition("(")[2]


@pytest.mark.parametrize(("arguments", "named"), CALLS)
def test_record_is_constructed_like_a_dataclass(arguments: tuple[Any, ...], named: dict[str, Any]) -> None:
    assert outcome(Mine, arguments, named) == outcome(Stock, arguments, named)


def test_equality_and_hash_skip_fields_with_compare_false() -> None:
    assert Mine(1, c=[1]) == Mine(1, c=[2])
    assert hash(Mine(1, c=[1])) == hash(Mine(1, c=[2]))
    assert Mine(1) != Mine(2)
    other: object = Stock(1)
    assert Mine(1) != other


def test_record_is_frozen_and_has_slots() -> None:
    one = Mine(1)
    with pytest.raises(FrozenInstanceError):
        one.a = 2  # type: ignore[misc]
    with pytest.raises(FrozenInstanceError):
        del one.a
    with pytest.raises((AttributeError, FrozenInstanceError)):
        one.new = 2  # type: ignore[attr-defined]
    assert not hasattr(one, "__dict__")


def test_dataclasses_functions_work_on_records() -> None:
    one = replace(Mine(1), b=(7,))
    assert (one.a, one.b) == (1, (7,))
    assert [x.name for x in fields(Mine)] == [x.name for x in fields(Stock)]
    assert pickle.loads(pickle.dumps(one)) == one
    assert copy.deepcopy(one) == one
    match one:
        case Mine(a, b):
            assert (a, b) == (1, (7,))


@record
class Checked:
    a: int
    b: int = 0

    def __post_init__(self) -> None:
        if self.a < self.b:
            raise ValueError("a is less than b")
        object.__setattr__(self, "a", self.a * 2)


def test_post_init_is_called() -> None:
    assert Checked(2, 1).a == 4
    with pytest.raises(ValueError, match="less"):
        Checked(1, 2)


@record(slots=False)
class Cached:
    a: int

    @cached_property
    def double(self) -> int:
        return self.a * 2

    def __repr__(self) -> str:
        return "mine"


def test_record_without_slots_allows_cached_properties_and_own_methods() -> None:
    assert Cached(2).double == 4
    assert repr(Cached(2)) == "mine"


def test_each_record_has_its_own_default_values() -> None:
    assert Mine(1).c is not Mine(1).c


def test_records_of_the_same_shape_keep_their_own_fields_and_defaults() -> None:
    @record
    class Point:
        x: int
        y: int = 7

    @record
    class Name:
        put: str
        field_0: str = "last"

    assert (Point(1), Name("first")) == (Point(x=1, y=7), Name(put="first", field_0="last"))
    assert repr((Point(1), Name("first"))) == "(Point(x=1, y=7), Name(put='first', field_0='last'))"
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'put'"):
        Name()  # type: ignore[call-arg]


def test_field_without_a_default_may_not_follow_a_field_with_a_default() -> None:
    @record
    class Disordered:
        a: int = 1
        b: int  # type: ignore[misc]

    with pytest.raises(TypeError, match="without a default"):
        Disordered(1, 2)
