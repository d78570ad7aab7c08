"""Some of the points at which `python -m reliability.crashes` kills a worker."""

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from perdure.embedded.temporal import TemporalServer
from perdure.temporal.connect import connect
from reliability.crashes.case import Case, Environment, list_cases, make_environment, run_case
from reliability.crashes.checks import FinishedConversation, find_violations, read_conversation
from reliability.crashes.normalized_log import find_differences
from reliability.crashes.points import Harm, Point

HEARTBEAT = 5.0
"""Seconds: a worker that has little of a busy machine must not be taken for lost."""

CHOSEN: tuple[tuple[Harm, str], ...] = (
    ("kill", "after llm.chat: model.chat 0 "),
    ("kill", "after tool.call: tool pay"),
    ("lose", "after log.append: store.create events/"),
)


@pytest.mark.long
async def test_a_log_is_the_same_although_its_worker_was_lost(
    temporal_server: TemporalServer, tmp_path: Path
) -> None:
    place = make_environment(await connect(temporal_server.address), tmp_path, HEARTBEAT)
    undisturbed = await read_conversation(place.store, await run_case(place))
    assert await find_violations(place.store, undisturbed, undisturbed) == []
    await _every_law_can_be_broken(place, undisturbed)

    chosen = list(_chosen(undisturbed.played.points))
    seen = await asyncio.gather(*(_seen(place, case) for case in chosen))
    assert [item.played.reached for item in seen] == [True, True, True]
    assert [await find_violations(place.store, undisturbed, item) for item in seen] == [[], [], []]
    assert [[call.tool_name for call in item.lost_calls] for item in seen] == [[], ["pay"], []]
    bills = [len(item.played.bills) - len(undisturbed.played.bills) for item in seen]
    assert bills == [1, 0, 0]


def _chosen(points: list[Point]) -> Iterator[Case]:
    every = list(list_cases(points))
    for harm, text in CHOSEN:
        case = next(
            item for item in every if item.harm == harm and str(item.point).startswith(text)
        )
        yield replace(case, elsewhere=False)  # which it takes longer to come to


async def _seen(place: Environment, case: Case) -> FinishedConversation:
    return await read_conversation(place.store, await run_case(place, case))


async def _every_law_can_be_broken(place: Environment, good: FinishedConversation) -> None:
    played = good.played
    first, *_ = sorted(key for key in played.objects if "/events/" in key)
    for wrong in (
        replace(played, effects={**played.effects, "paid": ["5", "5", "7"]}),
        replace(played, effects={**played.effects, "paid": ["5"]}),
        replace(played, bills=[*played.bills, played.bills[0]]),
        replace(played, altered=[first]),
        replace(played, objects={k: body for k, body in played.objects.items() if k != first}),
    ):
        assert await find_violations(place.store, good, FinishedConversation(wrong, good.entries))
    for entries in (good.entries[:-1], [*good.entries[:-2], *reversed(good.entries[-2:])]):
        log = FinishedConversation(played, entries).told
        assert find_differences(good.told, log, [])


def test_logs_differ_by_their_texts_but_not_by_lost_calls() -> None:
    log = {"MessageEvent 1": {"text": "Pay."}, "answer c": {"kind": "ObservationEvent"}}
    lost = {**log, "answer c": {"kind": "AgentErrorEvent"}}
    assert find_differences(log, log, []) == []
    assert find_differences(log, lost, [])
    assert find_differences(log, lost, ["answer c"]) == []
    assert find_differences(log, {**lost, "MessageEvent 1": {"text": "Do."}}, ["answer c"])
