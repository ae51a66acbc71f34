"""Values: every table in cases/values, and the laws that hold for all values."""

import json
import math
import struct
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta, timezone
from enum import Enum
from pathlib import Path
from subprocess import run
from sys import executable
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from omnigraph.errors import InputError, OmnigraphError, ParameterError, PropertyValueError
from omnigraph.values import (
    RANGES,
    BlobUri,
    PropertyType,
    ScalarType,
    canonical_spelling,
    coerce_assigned,
    coerce_loaded,
    coerce_parameter,
    encode_export,
    encode_result,
    entity_id,
    format_blob,
    format_date,
    format_datetime,
    narrow_to_f32,
    parse_blob,
    parse_date,
    parse_datetime,
    sha256_hex,
    spell_float,
)

CASES = Path(__file__).parents[1] / "cases" / "values"


def table(name: str) -> list[Any]:
    """The cases of a file: one per line, `input => expected`; `#` starts a comment line."""
    lines = (CASES / f"{name}.txt").read_text(encoding="utf-8").splitlines()
    cases = [line.split(" => ") for line in lines if line and not line.startswith("#")]
    return [pytest.param(given, wanted, id=given) for given, wanted in cases]


def read_type(text: str) -> PropertyType:
    core, nullable = text.removesuffix("?"), text.endswith("?")
    if core.startswith("enum("):
        words = tuple(core[5:-1].split(","))
        return PropertyType(ScalarType.STRING, nullable, enum_values=words)
    if core.startswith("Vector("):
        return PropertyType(ScalarType.VECTOR, nullable, vector_dim=int(core[7:-1]))
    return PropertyType(ScalarType(core.strip("[]")), nullable, is_list=core.startswith("["))


def split(given: str) -> tuple[str, Any]:
    kind, _, value = given.partition(" ")
    return kind, json.loads(value)


def shown(value: Any) -> Any:
    """A stored value as JSON can hold it."""
    if isinstance(value, BlobUri):
        return {"uri": value.uri}
    if isinstance(value, bytes):
        return format_blob(value)
    return list(value) if isinstance(value, tuple) else value


def check(call: Callable[[], Any], wanted: str, error: type[OmnigraphError]) -> None:
    if wanted.startswith("! "):
        with pytest.raises(error) as caught:
            call()
        for word in wanted[2:].split():
            assert word in str(caught.value)
        return
    found = shown(call())
    assert json.dumps(found) == json.dumps(json.loads(wanted))  # 1 and 1.0 and true differ


@pytest.mark.parametrize(("given", "wanted"), table("display"))
def test_type_is_printed_in_schema_syntax(given: str, wanted: str) -> None:
    assert read_type(given).display() == wanted


@pytest.mark.parametrize(("given", "wanted"), table("parameter") + table("time"))
def test_a_parameter_is_stored_by_its_type(given: str, wanted: str) -> None:
    kind, value = split(given)
    check(lambda: coerce_parameter(read_type(kind), value, parameter_name="p"), wanted, ParameterError)


@pytest.mark.parametrize(("given", "wanted"), table("javascript"))
def test_a_javascript_parameter_must_be_exact(given: str, wanted: str) -> None:
    kind, value = split(given)

    def call() -> Any:
        return coerce_parameter(read_type(kind), value, parameter_name="p", mode="javascript")

    check(call, wanted, ParameterError)


@pytest.mark.parametrize(("given", "wanted"), table("load"))
def test_a_loaded_value_must_fit_its_property(given: str, wanted: str) -> None:
    kind, value = split(given)
    check(lambda: loaded(read_type(kind), value), wanted, PropertyValueError)


@pytest.mark.parametrize(("given", "wanted"), table("assign"))
def test_an_assigned_value_must_fit_its_property(given: str, wanted: str) -> None:
    kind, value = split(given)
    check(lambda: assigned(read_type(kind), value), wanted, PropertyValueError)


def loaded(kind: PropertyType, value: Any) -> Any:
    return coerce_loaded(kind, value, type_name="T", property_name="x")


def assigned(kind: PropertyType, value: Any) -> Any:
    return coerce_assigned(kind, value, type_name="T", property_name="x")


@pytest.mark.parametrize(("given", "wanted"), table("spelling"))
def test_stored_value_has_one_canonical_text(given: str, wanted: str) -> None:
    kind, value = split(given)
    assert canonical_spelling(read_type(kind), loaded(read_type(kind), value)) == wanted


@pytest.mark.parametrize(("given", "wanted"), table("ids"))
def test_id_is_derived_from_the_key(given: str, wanted: str) -> None:
    names, values = split(given)
    types = [read_type(name) for name in names.split(";")]
    stored = [None if v is None else loaded(t, v) for t, v in zip(types, values, strict=True)]
    if wanted.startswith("! "):
        check(lambda: entity_id(types, stored), wanted, InputError)
    else:
        assert entity_id(types, stored) == wanted


@pytest.mark.parametrize(("given", "wanted"), table("result"))
def test_a_result_is_encoded_for_people(given: str, wanted: str) -> None:
    kind, value = split(given)
    stored = loaded(read_type(kind), value)
    check(lambda: encode_result(read_type(kind), stored), wanted, OmnigraphError)


@pytest.mark.parametrize(("given", "wanted"), table("result_sdk"))
def test_client_results_encode_large_integers_as_text(given: str, wanted: str) -> None:
    kind, value = split(given)
    stored = loaded(read_type(kind), value)
    check(lambda: encode_result(read_type(kind), stored, integers_as_text=True), wanted, OmnigraphError)


@pytest.mark.parametrize(("given", "wanted"), table("export"))
def test_an_export_loads_back_unchanged(given: str, wanted: str) -> None:
    kind, value = split(given)
    stored = loaded(read_type(kind), value)
    check(lambda: encode_export(read_type(kind), stored), wanted, OmnigraphError)
    assert loaded(read_type(kind), json.loads(wanted)) == stored


def test_non_finite_numbers_are_text_in_results_and_null_in_vectors() -> None:
    double, vector = PropertyType(ScalarType.F64), PropertyType(ScalarType.VECTOR, vector_dim=3)
    found = [encode_result(double, float(x)) for x in ("nan", "inf", "-inf")]
    assert found == ["NaN", "Infinity", "-Infinity"]
    assert encode_result(vector, (1.0, math.nan, math.inf)) == [1.0, None, None]
    assert encode_result(PropertyType(ScalarType.I32, is_list=True), (1, None)) == [1, None]


@pytest.mark.parametrize("value", ["nan", "inf", "-inf"])
def test_non_finite_number_has_no_canonical_text(value: str) -> None:
    with pytest.raises(InputError, match="key"):
        spell_float(float(value))


@pytest.mark.parametrize(
    ("kind", "value"), [("I64", True), ("I64", 1.5), ("Bool", 1), ("String", 1), ("Date", "2024-01-01")]
)
def test_only_stored_values_have_canonical_text(kind: str, value: Any) -> None:
    with pytest.raises(InputError, match=kind):
        canonical_spelling(read_type(kind), value)


class Colour(Enum):
    RED = "red"


@pytest.mark.parametrize(
    ("kind", "value", "stored"),
    [
        ("Date", date(1970, 1, 2), 1),
        ("Date", datetime(1970, 1, 1, 23, tzinfo=timezone(-timedelta(hours=2))), 1),
        ("DateTime", date(1970, 1, 2), 86_400_000),
        ("DateTime", datetime(1970, 1, 1, 0, 0, 1, 1999, tzinfo=UTC), 1001),
        ("DateTime", datetime(1, 1, 1, tzinfo=UTC), -62_135_596_800_000),
        ("Blob", b"hi", b"hi"),
        ("Blob", memoryview(b"hi"), b"hi"),
        ("String", Colour.RED, "red"),
        ("[I32]", (1, 2), (1, 2)),
    ],
)
def test_python_values_are_accepted(kind: str, value: Any, stored: Any) -> None:
    assert coerce_parameter(read_type(kind), value, parameter_name="p") == stored
    assert loaded(read_type(kind), value) == stored


@pytest.mark.parametrize(
    "value", [datetime(2024, 1, 1), datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=1))), object()]
)
def test_an_instant_without_time_zone_or_range_is_refused(value: Any) -> None:
    with pytest.raises(ParameterError, match="DateTime"):
        coerce_parameter(read_type("DateTime"), value, parameter_name="p")


def test_arrays_of_other_libraries_are_accepted_as_lists() -> None:
    np = pytest.importorskip("numpy")
    vector = np.array([0.5, 1], dtype="float32")
    assert coerce_parameter(read_type("Vector(2)"), vector, parameter_name="p") == (0.5, 1.0)
    assert coerce_parameter(read_type("I32"), np.int16(3), parameter_name="p") == 3


def test_an_error_names_line_type_and_property() -> None:
    with pytest.raises(PropertyValueError) as caught:
        coerce_loaded(read_type("I32"), "3", type_name="User", property_name="age", line_number=4)
    assert str(caught.value) == "line 4: property 'User.age': expected I32, got string '3'"
    assert caught.value.details["line"] == 4


def test_an_error_shows_neither_secrets_nor_long_values() -> None:
    for value in ("s3://key:secret@bucket/x?sig=abc", "x" * 5000):
        with pytest.raises(ParameterError) as caught:
            coerce_parameter(read_type("Date"), value, parameter_name="p")
        assert "secret" not in str(caught.value)
        assert "sig" not in str(caught.value)
        assert len(str(caught.value)) < 200


@given(st.floats(allow_nan=False, allow_infinity=False))
@example(5e-324)
@example(1.7976931348623157e308)
def test_double_round_trips_through_text(value: float) -> None:
    spelled = spell_float(value)
    assert float(spelled) == value
    assert "e" not in spelled
    assert not spelled.endswith((".0", "."))


@given(st.floats(allow_nan=False, allow_infinity=False, width=32))
@example(struct.unpack("<f", b"\x01\x00\x00\x00")[0])
def test_single_round_trips_through_its_shortest_text(value: float) -> None:
    np = pytest.importorskip("numpy")
    spelled = spell_float(value, single=True)
    assert narrow_to_f32(float(spelled)) == value
    if value != 0:
        assert spelled == np.format_float_positional(np.float32(value), unique=True, trim="-")


@pytest.mark.parametrize("exponent", range(-149, 128))
def test_powers_of_two_have_the_shortest_text(exponent: int) -> None:
    np = pytest.importorskip("numpy")
    value = np.float32(2.0**exponent)
    spelled = spell_float(float(value), single=True)
    assert spelled == np.format_float_positional(value, unique=True, trim="-")


@given(st.dates())
def test_date_round_trips_through_text(value: date) -> None:
    day = parse_date(value.isoformat())
    assert day is not None
    assert format_date(day) == value.isoformat()


@given(st.integers(-62_135_596_800_000, 253_402_300_799_999))
def test_datetime_round_trips_through_text(milli: int) -> None:
    assert parse_datetime(format_datetime(milli)) == milli


@given(st.datetimes(timezones=st.just(UTC)))
def test_datetimes_agree_with_the_standard_library(value: datetime) -> None:
    wanted = (value - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)
    assert parse_datetime(value.isoformat()) == wanted


@given(st.text())
def test_any_text_parses_as_a_date_or_is_rejected(text: str) -> None:
    assert parse_date(text) is None or len(text) >= 10


@given(st.binary())
def test_blob_round_trips_through_text(data: bytes) -> None:
    assert parse_blob(format_blob(data)) == data


ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)
SCALARS = [scalar for scalar in ScalarType if scalar is not ScalarType.VECTOR]
ANY_TYPE = st.builds(PropertyType, st.sampled_from(SCALARS), nullable=st.booleans(), is_list=st.booleans()) | st.builds(
    PropertyType, st.just(ScalarType.VECTOR), vector_dim=st.integers(1, 3)
)


@settings(max_examples=300)
@given(ANY_TYPE, ANY_JSON | st.sampled_from(["1", "2024-01-01", "base64:AA=="]))
def test_coercion_returns_a_value_or_raises_a_typed_error(kind: PropertyType, value: Any) -> None:
    ways: list[Callable[[], Any]] = [
        lambda: coerce_parameter(kind, value, parameter_name="p"),
        lambda: coerce_parameter(kind, value, parameter_name="p", mode="javascript"),
        lambda: loaded(kind, value),
        lambda: assigned(kind, value),
    ]
    for way in ways:
        try:
            stored = way()
        except OmnigraphError:
            continue
        json.dumps(encode_result(kind, stored), allow_nan=False)
        assert loaded(kind, encode_export(kind, stored)) == stored


def test_an_integer_of_thousands_of_digits_is_refused_like_any_other() -> None:
    for kind in ("I64", "F64", "F32", "DateTime", "String"):
        with pytest.raises(PropertyValueError, match=f"{kind}.*-bit integer"):
            loaded(read_type(kind), 10**5000)


@given(st.sampled_from(sorted(RANGES, key=lambda s: s.value)), st.integers())
def test_integers_outside_their_range_are_refused(scalar: ScalarType, value: int) -> None:
    low, high = RANGES[scalar]
    if low <= value <= high:
        assert loaded(PropertyType(scalar), value) == value
    else:
        with pytest.raises(PropertyValueError, match=scalar.value):
            loaded(PropertyType(scalar), value)


def test_type_predicates_are_correct() -> None:
    numbers = [s.value for s in ScalarType if PropertyType(s).is_numeric]
    assert numbers == ["I32", "I64", "U32", "U64", "F32", "F64"]
    assert [s.value for s in ScalarType if PropertyType(s).is_integer] == numbers[:4]
    assert not read_type("[I32]").is_numeric
    assert not read_type("[I32]").is_integer
    assert read_type("Vector(2)").is_vector
    assert read_type("enum(a)").is_enum
    assert not read_type("String").is_enum
    assert read_type("I32").as_nullable(True) == read_type("I32?")
    assert read_type("[I32]?").element_type() == read_type("I32")
    assert read_type("Vector(2)").element_type() == read_type("F32")
    assert read_type("enum(a,b)") == read_type("enum(b,a)")


def test_the_sha256_of_a_text_is_that_of_its_utf8() -> None:
    assert sha256_hex("abc") == sha256_hex(b"abc")
    assert sha256_hex("abc").startswith("ba7816bf8f01cfea")


def test_values_import_no_data_library() -> None:
    code = "import sys, omnigraph.values, omnigraph.values.clock_and_ids; print(*sys.modules)"
    done = run([executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"numpy", "pyarrow", "orjson", "lance", "ulid"} & set(done.stdout.split())
