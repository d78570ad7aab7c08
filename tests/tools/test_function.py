"""A typed function is a tool with data as arguments and text as result."""

import asyncio
import contextvars
import threading
from decimal import Decimal
from typing import Any, NoReturn

import pytest

from perdure.events.actions import MCPToolAction
from perdure.events.content import join_text
from perdure.events.observations import MCPToolObservation, ThinkObservation
from perdure.tools.function import tool_from
from perdure.tools.output import MAX_SHOWN_CHARACTERS
from perdure.tools.tool import ToolFailed
from tests.tools.calling import Colour, Point, Size, add, call, call_for_text
from tests.tools.conftest import ToolBench
from tests.tools.processes import wait_until


async def test_a_call_goes_in_as_data_and_comes_out_as_text(place: ToolBench) -> None:
    made = tool_from(add)
    action = made.parse({"a": "2", "b": 3})
    assert action == MCPToolAction(data={"a": 2, "b": 3})
    observation = await made.run(action, place.context)
    assert isinstance(observation, MCPToolObservation)
    assert observation.tool_name == "add"
    assert join_text(observation.content) == "5"


async def test_a_default_is_the_functions_own(place: ToolBench) -> None:
    assert tool_from(add).parse({"a": 2}) == MCPToolAction(data={"a": 2})
    assert await call_for_text(add, place, a=2) == "3"


@pytest.mark.parametrize(
    ("result", "text"),
    [
        ("as it is", "as it is"),
        ("", ""),
        (None, ""),
        (Point(x=1), '{"x":1,"y":0}'),
        ({"a": [1, None, "é"]}, '{"a":[1,null,"é"]}'),
        ([Point(x=1), Size(2)], '[{"x":1,"y":0},{"width":2}]'),
        ((True, 1.5), "[true,1.5]"),
        (Colour.BLUE, '"blue"'),
        (Decimal("1.10"), '"1.10"'),
        ("half a \ud83d pair", "half a ? pair"),
    ],
)
async def test_results_become_text(place: ToolBench, result: object, text: str) -> None:
    def returns() -> Any:
        return result

    assert await call_for_text(returns, place) == text


async def test_an_observation_is_taken_as_it_is(place: ToolBench) -> None:
    thought = ThinkObservation(is_error=True)

    async def returns() -> ThinkObservation:
        return thought

    assert await call(returns, place) is thought


async def test_a_long_result_is_cut_in_the_middle_and_stored_whole(place: ToolBench) -> None:
    def long() -> str:
        return "é" * MAX_SHOWN_CHARACTERS + "end"

    result = await call_for_text(long, place)
    assert result.startswith(
        "é" * (MAX_SHOWN_CHARACTERS // 2) + "\n[... 3 characters are left out here; the whole"
    )
    assert result.endswith("éend")
    key = result.partition("kept as ")[2].partition(" ")[0]
    assert (await place.stored(key)).decode() == long()


async def test_a_result_that_no_json_can_carry_is_a_failure(place: ToolBench) -> None:
    def returns() -> object:
        return object()

    with pytest.raises(ToolFailed, match=r"^returns returned a object, which no JSON can carry\.$"):
        await call(returns, place)


@pytest.mark.parametrize("error", [ToolFailed("no such city"), KeyError("k"), TimeoutError()])
async def test_a_functions_exception_propagates(place: ToolBench, error: Exception) -> None:
    def blocks() -> NoReturn:
        raise error

    async def waits() -> NoReturn:
        raise error

    for function in (blocks, waits):
        with pytest.raises(type(error)) as raised:
            await call(function, place)
        assert raised.value.args == error.args


async def test_a_function_cannot_take_the_worker_along(place: ToolBench) -> None:
    def blocks() -> NoReturn:
        raise SystemExit(3)

    async def waits() -> NoReturn:
        raise SystemExit(3)

    def stops() -> int:
        return next(iter(()))

    def looks_cancelled() -> int:
        raise asyncio.CancelledError

    for function in (blocks, waits):
        with pytest.raises(ToolFailed, match=r"tried to exit the program \(3\)\.$"):
            await call(function, place)
    with pytest.raises(RuntimeError, match="StopIteration was raised"):
        await call(stops, place)
    with pytest.raises(RuntimeError, match="CancelledError was raised"):
        await call(looks_cancelled, place)


NAME = contextvars.ContextVar("NAME", default="unknown")


async def test_a_sync_function_runs_in_a_thread_without_blocking_the_loop(place: ToolBench) -> None:
    go = threading.Event()

    def waits() -> str:
        go.wait()
        return f"{NAME.get()} {threading.current_thread().daemon}"

    NAME.set("known")
    # More of them than any pool of the event loop has threads.
    tasks = [asyncio.create_task(call_for_text(waits, place)) for _ in range(50)]
    await wait_until(lambda: sum(thread.name == "tool" for thread in threading.enumerate()) == 50)
    go.set()
    assert await asyncio.gather(*tasks) == ["known True"] * 50


async def test_a_cancelled_sync_function_is_no_longer_waited_for(place: ToolBench) -> None:
    began, go = threading.Event(), threading.Event()

    def waits() -> None:
        began.set()
        go.wait()

    task = asyncio.create_task(call(waits, place))
    await wait_until(began.is_set)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    go.set()
    await wait_until(lambda: all(thread.name != "tool" for thread in threading.enumerate()))


async def test_a_cancelled_async_function_is_cancelled(place: ToolBench) -> None:
    seen: list[str] = []

    async def waits() -> None:
        try:
            seen.append("began")
            await asyncio.Event().wait()
        finally:
            seen.append("ended")

    task = asyncio.create_task(call(waits, place))
    await wait_until(lambda: seen)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert seen == ["began", "ended"]
