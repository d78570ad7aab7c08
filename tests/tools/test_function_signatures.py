"""A tool's definition comes from the function's name, docstring and hints."""

import datetime
import threading
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest

from perdure.errors import Invalid
from perdure.events.content import ToolAnnotations
from perdure.tools.function import tool, tool_from
from perdure.tools.tool import Context, Tool
from tests.tools.calling import Colour, Point, Size, add, call_for_text
from tests.tools.conftest import ToolBench


def properties(made: Tool) -> dict[str, Any]:
    schemas: dict[str, Any] = made.definition.parameters["properties"]
    return schemas


def test_the_definition_has_name_docstring_and_hints() -> None:
    definition = tool_from(add).definition
    assert definition.name == "add"
    assert definition.description == "Add two numbers.\n\nThe second one is not negative."
    assert definition.annotations == ToolAnnotations()
    assert definition.parameters == {
        "type": "object",
        "properties": {
            "a": {"type": "integer"},
            "b": {"type": "integer", "minimum": 0, "default": 1, "description": "What to add."},
        },
        "required": ["a"],
        "additionalProperties": False,
    }


async def test_every_kind_of_parameter_gets_its_value(place: ToolBench) -> None:
    def positional(a: int, b: int = 2, /) -> str:
        return f"{a} {b}"

    def keyword(*, a: int, b: int = 2) -> str:
        return f"{a} {b}"

    def mixed(a: int, /, b: int, *, c: int = 3) -> str:
        return f"{a} {b} {c}"

    def nothing() -> str:
        return "called"

    def odd_names(_a: int, model_config: int, json: int, self: int, copy: int) -> str:
        return f"{_a} {model_config} {json} {self} {copy}"

    assert await call_for_text(positional, place, a=1) == "1 2"
    assert await call_for_text(keyword, place, a=1, b=5) == "1 5"
    assert await call_for_text(mixed, place, a=1, b=2) == "1 2 3"
    assert await call_for_text(nothing, place) == "called"
    arguments = {"_a": 1, "model_config": 2, "json": 3, "self": 4, "copy": 5}
    assert await call_for_text(odd_names, place, **arguments) == "1 2 3 4 5"


async def test_every_type_that_json_can_carry_arrives_as_itself(place: ToolBench) -> None:
    def typed(
        colour: Colour,
        point: Point,
        points: list[Point],
        table: dict[str, Decimal],
        when: datetime.datetime,
        path: Path,
        pair: tuple[int, str],
        size: Size,
        mode: Literal["r", "w"],
        maybe: int | None = None,
    ) -> str:
        return repr((colour, point, points, table, when, path, pair, size, mode, maybe))

    result = await call_for_text(
        typed,
        place,
        colour="red",
        point={"x": 1},
        points=[{"x": 2, "y": 3}],
        table={"a": "0.10"},
        when="2026-01-02T03:04:05Z",
        path="a/b",
        pair=[1, "x"],
        size={"width": 4},
        mode="r",
    )
    moment = datetime.datetime(2026, 1, 2, 3, 4, 5, tzinfo=datetime.UTC)
    assert result.replace("TzInfo(UTC)", "datetime.timezone.utc").replace(
        "TzInfo(0)", "datetime.timezone.utc"
    ) == repr(
        (
            Colour.RED,
            Point(x=1),
            [Point(x=2, y=3)],
            {"a": Decimal("0.10")},
            moment,
            Path("a/b"),
            (1, "x"),
            Size(4),
            "r",
            None,
        )
    )


async def test_a_default_that_no_json_can_carry_stays_with_the_function(place: ToolBench) -> None:
    marker = object()

    def f(value: Any = marker) -> str:
        return str(value is marker)

    assert properties(tool_from(f)) == {"value": {}}
    assert await call_for_text(f, place) == "True"


async def test_a_context_is_handed_in_and_not_shown(place: ToolBench) -> None:
    async def where(name: str, context: Context, *, again: Annotated[Context, "it"]) -> str:
        context.progress(name)
        key = await context.keep(b"kept")
        return f"{context.seq} {again is context} {key.partition('/')[0]}"

    assert list(properties(tool_from(where))) == ["name"]
    assert await call_for_text(where, place, name="n") == "3 True blobs"
    assert place.progress == ["n"]
    with pytest.raises(ValueError, match=r"^`context` is unknown here, use only `name`\.$"):
        tool_from(where).parse({"name": "n", "context": {}})


class Account:
    def __init__(self, balance: int) -> None:
        self.balance = balance

    def withdraw(self, amount: int) -> int:
        """Take money out."""
        self.balance -= amount
        return self.balance

    @classmethod
    def opened(cls, balance: int) -> int:
        return cls(balance).balance

    @staticmethod
    async def rate() -> float:
        return 0.5


async def test_methods_are_functions(place: ToolBench) -> None:
    account = Account(10)
    assert await call_for_text(account.withdraw, place, amount=3) == "7"
    assert await call_for_text(Account.opened, place, balance=4) == "4"
    assert await call_for_text(Account.rate, place) == "0.5"


def test_the_decorator_sets_only_the_given_hints() -> None:
    @tool(name="sum-up", read_only=True, idempotent=True, open_world=False)
    def total(numbers: list[int]) -> int:
        """Add them up."""
        return sum(numbers)

    assert total([1, 2]) == 3
    definition = tool_from(total).definition
    assert definition.name == "sum-up"
    assert definition.annotations == ToolAnnotations(
        readOnlyHint=True, idempotentHint=True, destructiveHint=False, openWorldHint=False
    )
    assert tool_from(tool(destructive=False)(add)).definition.annotations == ToolAnnotations(
        destructiveHint=False
    )
    del add.__dict__["__tool__"]


def test_only_a_tool_that_may_be_called_again_is_brief() -> None:
    assert tool_from(tool(idempotent=True, brief=True)(add)).definition.brief is True
    assert tool_from(tool(read_only=True)(add)).definition.brief is None
    del add.__dict__["__tool__"]
    with pytest.raises(Invalid, match="may be called twice"):
        tool(brief=True)


def variadic(*numbers: int) -> None: ...
def keywords(**numbers: int) -> None: ...
def unhinted(a, b: int) -> None: ...  # type: ignore[no-untyped-def]
def unresolved(a: "Nowhere") -> None: ...  # type: ignore[name-defined]  # noqa: F821
def arbitrary(a: threading.Event) -> None: ...
def a_callable(a: Callable[[], int]) -> None: ...
def generates(a: int) -> Iterator[int]:
    yield a


@pytest.mark.parametrize(
    ("function", "sentence"),
    [
        (variadic, "Tool 'variadic' takes `*numbers: int`: name every parameter instead."),
        (keywords, "Tool 'keywords' takes `**numbers: int`: name every parameter instead."),
        (unhinted, "Parameter `a` of tool 'unhinted' needs a type hint."),
        (
            unresolved,
            "The signature of tool 'unresolved' cannot be read: name 'Nowhere' is not defined.",
        ),
        (
            arbitrary,
            "A parameter of tool 'arbitrary' has a type that no JSON can carry: Unable to "
            "generate pydantic-core schema for <class 'threading.Event'>.",
        ),
        (
            lambda: None,
            "'<lambda>' is no name for a tool: use `@tool(name=...)` with a letter or `_` and "
            "then up to 63 letters, digits, `_` or `-`.",
        ),
        (
            tool(name="x" * 65)(lambda: None),
            f"{'x' * 65!r} is no name for a tool: use `@tool(name=...)` with a letter or `_` and "
            "then up to 63 letters, digits, `_` or `-`.",
        ),
        (Account, f"{Account!r} is not a function: wrap it in a `def` with type hints."),
    ],
)
def test_an_uncallable_signature_is_reported_in_a_sentence(
    function: Callable[..., Any], sentence: str
) -> None:
    with pytest.raises(TypeError) as raised:
        tool_from(function)
    assert str(raised.value) == sentence


def test_a_callable_has_no_schema() -> None:
    with pytest.raises(TypeError, match=r"^A parameter of tool 'a_callable' has a type that no"):
        tool_from(a_callable)


def test_a_builtin_without_hints_is_refused() -> None:
    with pytest.raises(TypeError, match=r"^Parameter `obj` of tool 'len' needs a type hint\.$"):
        tool_from(len)


async def test_a_generator_is_read_to_its_end(place: ToolBench) -> None:
    assert await call_for_text(generates, place, a=1) == "[1]"


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({}, "`a` is missing."),
        (
            {"a": "x"},
            "`a`: input should be a valid integer, unable to parse string as an integer, got 'x'.",
        ),
        ({"a": 1, "b": -1}, "`b`: input should be greater than or equal to 0, got -1."),
        ({"a": 1, "c": 1}, "`c` is unknown here, use only `a`, `b`."),
    ],
)
def test_invalid_arguments_are_reported_in_a_sentence(
    arguments: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(ValueError) as raised:  # noqa: PT011 - the whole sentence is compared
        tool_from(add).parse(arguments)
    assert str(raised.value) == sentence
