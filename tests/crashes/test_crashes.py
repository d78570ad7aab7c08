"""Some of the points at which a worker is lost: `python -m tests.crashes` plays all of them."""

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from client.connect import connect
from embedded.temporal import TemporalServer
from tests.crashes.judging import Witness, judge, witness
from tests.crashes.playing import Case, Stage, cases, play, stage
from tests.crashes.points import Harm, Point
from tests.crashes.telling import differences

HEARTBEAT = 5.0
"""Seconds: a worker that has little of a busy machine must not be taken for lost."""

CHOSEN: tuple[tuple[Harm, str], ...] = (
    ("kill", "after llm.chat: model.chat 0 "),
    ("kill", "after tool.call: tool pay"),
    ("lose", "after log.append: store.create events/"),
)


@pytest.mark.long
async def test_a_log_does_not_tell_that_its_worker_was_lost(
    temporal_server: TemporalServer, tmp_path: Path
) -> None:
    place = stage(await connect(temporal_server.address), tmp_path, HEARTBEAT)
    undisturbed = await witness(place.store, await play(place))
    assert await judge(place.store, undisturbed, undisturbed) == []
    await _every_law_can_be_broken(place, undisturbed)

    chosen = list(_chosen(undisturbed.played.points))
    seen = await asyncio.gather(*(_seen(place, case) for case in chosen))
    assert [one.played.hit for one in seen] == [True, True, True]
    assert [await judge(place.store, undisturbed, one) for one in seen] == [[], [], []]
    assert [[call.tool_name for call in one.lost] for one in seen] == [[], ["pay"], []]
    bills = [len(one.played.bills) - len(undisturbed.played.bills) for one in seen]
    assert bills == [1, 0, 0]


def _chosen(points: list[Point]) -> Iterator[Case]:
    every = list(cases(points))
    for harm, text in CHOSEN:
        case = next(one for one in every if one.harm == harm and str(one.point).startswith(text))
        yield replace(case, elsewhere=False)  # which it takes longer to come to


async def _seen(place: Stage, case: Case) -> Witness:
    return await witness(place.store, await play(place, case))


async def _every_law_can_be_broken(place: Stage, good: Witness) -> None:
    played = good.played
    first, *_ = sorted(key for key in played.objects if "/events/" in key)
    for wrong in (
        replace(played, deeds={**played.deeds, "paid": ["5", "5", "7"]}),
        replace(played, deeds={**played.deeds, "paid": ["5"]}),
        replace(played, bills=[*played.bills, played.bills[0]]),
        replace(played, altered=[first]),
        replace(played, objects={k: body for k, body in played.objects.items() if k != first}),
    ):
        assert await judge(place.store, good, Witness(wrong, good.entries))
    for entries in (good.entries[:-1], [*good.entries[:-2], *reversed(good.entries[-2:])]):
        told = Witness(played, entries).told
        assert differences(good.told, told, [])


def test_logs_differ_by_what_was_said_but_not_by_what_was_lost() -> None:
    told = {"MessageEvent 1": {"text": "Pay."}, "answer c": {"kind": "ObservationEvent"}}
    lost = {**told, "answer c": {"kind": "AgentErrorEvent"}}
    assert differences(told, told, []) == []
    assert differences(told, lost, [])
    assert differences(told, lost, ["answer c"]) == []
    assert differences(told, {**lost, "MessageEvent 1": {"text": "Do."}}, ["answer c"])
