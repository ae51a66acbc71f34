"""`Schema.from_classes`: dataclasses and pydantic models as types."""

from dataclasses import dataclass, field
from datetime import date, datetime
from enum import Enum, IntEnum
from typing import Annotated, Any, Literal, Optional

import pytest
from pydantic import BaseModel, Field

import omnigraph
from omnigraph import Schema, testing
from omnigraph.errors import LanguageError, UsageError


class Mood(Enum):
    GOOD = "good"
    BAD = "bad"


class Level(IntEnum):
    LOW = 1


@dataclass
class Person:
    """A human being.

    More about people.
    """

    name: Annotated[str, omnigraph.key]
    mail: Annotated[str | None, "@unique"] = None
    born: date | None = None
    seen: Optional[datetime] = None  # noqa: UP045 - the older spelling
    mood: Mood = Mood.GOOD
    state: Literal["on", "off"] = "on"
    level: Level = Level.LOW
    tags: list[str] = field(default_factory=list)
    face: Annotated[list[float], "Vector(3)"] | None = None
    age: Annotated[int, "I32", "@range(0..150)"] = 0
    photo: bytes | None = None
    active: bool = True


class City(BaseModel):
    name: Annotated[str, omnigraph.key]
    people: int = Field(0, ge=0, description='"inhabitants"')
    area: Annotated[float, Field(ge=0.5, le=9)] | None = None
    names: list[str] = Field(default_factory=list)


@dataclass
class Knows:
    src: Annotated[str, Person]
    dst: Annotated[str, Person]
    since: date | None = None


class LivesIn(BaseModel):
    who: Person
    where: City
    floor: int = Field(0, ge=0)


def test_classes_become_types() -> None:
    assert Schema.from_classes(Person, City, Knows, LivesIn).source == (
        """\
node Person @description("A human being.") {
    name: String @key
    mail: String? @unique
    born: Date?
    seen: DateTime?
    mood: enum(bad, good) @default("good")
    state: enum(off, on) @default("on")
    level: I64 @default(1)
    tags: [String]
    face: Vector(3)?
    age: I32 @default(0)
    photo: Blob?
    active: Bool @default(true)
    @range(age, 0..150)
}

node City {
    name: String @key
    people: I64 @default(0) @description("\\"inhabitants\\"")
    area: F64?
    names: [String]
    @range(people, 0..)
    @range(area, 0.5..9)
}

edge Knows: Person -> Person {
    since: Date?
}

edge LivesIn: Person -> City {
    floor: I64 @default(0)
}
"""
    )


def test_instances_of_the_classes_can_be_loaded() -> None:
    with testing.graph(Schema.from_classes(Person, Knows)) as graph:
        graph.load([Person("ada"), Person("bob"), Knows("ada", "bob", date(2020, 1, 1))], mode="append")
        assert graph.edges("Knows").select("from", "to", "since").to_lists() == [["ada", "bob", date(2020, 1, 1)]]


def test_annotations_may_be_text() -> None:
    @dataclass
    class Later:
        name: "Annotated[str, omnigraph.key]"
        next: "int | None" = None

    @dataclass
    class Follows:
        one: "Later"
        other: "Later"

    schema = Schema.from_classes(Later, Follows)
    assert (schema["Later"].key, schema.edges["Follows"].target_type) == (("name",), "Later")


@pytest.mark.parametrize("annotation", [dict[str, int], object, list[list[int]], int | str, list[Mood], complex])
def test_a_type_that_no_property_can_have_is_refused(annotation: Any) -> None:
    cls: type = dataclass(type("Thing", (), {"__annotations__": {"part": annotation}}))
    with pytest.raises(UsageError, match=r"Thing\.part"):
        Schema.from_classes(cls)


def test_a_class_must_be_a_dataclass_or_a_model() -> None:
    with pytest.raises(UsageError, match="neither a dataclass nor a pydantic model"):
        Schema.from_classes(int)


def test_a_class_refers_to_two_others_or_to_none() -> None:
    @dataclass
    class Half:
        owner: Annotated[str, Person]

    with pytest.raises(UsageError, match="Half has 1 reference to other classes; expected 0 or 2"):
        Schema.from_classes(Person, Half)


def test_an_invalid_name_is_reported_with_its_position() -> None:
    @dataclass
    class Wrong:
        Name: str

    with pytest.raises(LanguageError, match="must start with a lowercase letter"):
        Schema.from_classes(Wrong)
