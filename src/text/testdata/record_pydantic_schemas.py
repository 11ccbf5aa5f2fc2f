"""Records what pydantic says of 52 types into pydantic_schemas.json, for grammar_schema_test and tests/server.

    .venv/bin/python src/text/testdata/record_pydantic_schemas.py
"""

import dataclasses
import datetime
import decimal
import enum
import ipaddress
import json
import pathlib
import typing
import uuid
from typing import Annotated, Any, Literal, NamedTuple, Optional

import pydantic
from pydantic import BaseModel, Field
from typing_extensions import TypedDict


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 3


class Cat(BaseModel):
    kind: Literal["cat"]
    lives: int


class Dog(BaseModel):
    kind: Literal["dog"]
    tricks: list[str] = []


class Point(NamedTuple):
    x: int
    y: int


class Movie(TypedDict, total=False):
    title: str
    year: int


@dataclasses.dataclass
class Size:
    width: float
    height: float = 1.0


class Person(BaseModel):
    name: str
    age: int


class Node(BaseModel):
    value: int
    next: Optional["Node"] = None


class Street(BaseModel):
    street: str
    city: str


class Customer(BaseModel):
    name: str
    address: Street


class Aliased(BaseModel):
    given: str = Field(alias="givenName", description="As on a passport", examples=["Ada"])


class Strict(BaseModel):
    model_config = pydantic.ConfigDict(extra="forbid")
    a: int


class Open(BaseModel):
    model_config = pydantic.ConfigDict(extra="allow")
    a: int


TYPES = {
    "int": int, "float": float, "bool": bool, "str": str, "None": None, "Any": Any,
    "positive int": pydantic.PositiveInt, "bounded int": Annotated[int, Field(gt=1, lt=9)],
    "multiple of": Annotated[int, Field(multiple_of=5)], "Decimal": decimal.Decimal,
    "bounded Decimal": Annotated[decimal.Decimal, Field(gt=0, le=100)],
    "constr": Annotated[str, Field(pattern=r"^[A-Z]{3}$")],
    "str of a length": Annotated[str, Field(min_length=2, max_length=5)], "bytes": bytes, "Path": pathlib.Path,
    "UUID": uuid.UUID, "UUID4": pydantic.UUID4, "date": datetime.date, "time": datetime.time,
    "datetime": datetime.datetime, "timedelta": datetime.timedelta, "AnyUrl": pydantic.AnyUrl,
    "HttpUrl": pydantic.HttpUrl, "PostgresDsn": pydantic.PostgresDsn, "IPv4Address": ipaddress.IPv4Address,
    "IPv6Address": ipaddress.IPv6Address, "IPv4Network": ipaddress.IPv4Network,
    "IPvAnyAddress": pydantic.IPvAnyAddress, "SecretStr": pydantic.SecretStr, "Json": pydantic.Json[list[int]],
    "Base64Str": pydantic.Base64Str, "Literal": Literal["a", 1, None, True], "Enum": Color, "IntEnum": Level,
    "Optional": Optional[int], "Union": int | str | None,
    "discriminated union": Annotated[Cat | Dog, Field(discriminator="kind")], "list": list[int],
    "list of a length": Annotated[list[int], Field(min_length=1, max_length=3)], "tuple": tuple[int, str],
    "tuple of any length": tuple[int, ...], "set": set[int], "frozenset": frozenset[str], "dict": dict[str, int],
    "dict by Literal": dict[Literal["a", "b"], int], "dict by pattern": dict[Annotated[str, Field(pattern="^a")], int],
    "NamedTuple": Point, "TypedDict": Movie, "dataclass": Size, "model": Person, "nested model": Customer,
    "recursive model": Node,
}
# Beyond the 52.
MORE = {
    "alias": Aliased, "extra forbidden": Strict, "extra allowed": Open, "set of an Enum": set[Color],
    "dict by Enum": dict[Color, int], "ByteSize": pydantic.ByteSize, "typing.Pattern": typing.Pattern,
    "AwareDatetime": pydantic.AwareDatetime, "list of models": list[Person], "dict of models": dict[str, Person],
    "dict by UUID": dict[uuid.UUID, int], "dict of a size": Annotated[dict[str, int], Field(min_length=2)],
}
REFUSED = {
    "set": "#: uniqueItems", "frozenset": "#: uniqueItems", "dict of a size": "#: minProperties",
}


def record(types):
    for name, kind in types.items():
        entry = {"name": name, "schema": pydantic.TypeAdapter(kind).json_schema()}
        yield {**entry, "refused": REFUSED[name]} if name in REFUSED else entry


if __name__ == "__main__":
    assert len(TYPES) == 52, len(TYPES)
    tables = {"counted": list(record(TYPES)), "more": list(record(MORE))}
    lines = [f"{json.dumps(name)}: [\n" + ",\n".join(json.dumps(entry) for entry in entries) + "]"
             for name, entries in tables.items()]
    path = pathlib.Path(__file__).with_name("pydantic_schemas.json")
    path.write_text("{" + ",\n".join(lines) + "}\n")
