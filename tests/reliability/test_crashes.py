"""Some of the points at which `python -m reliability.crashes` kills a worker."""

import asyncio
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from perdure.embedded.temporal import TemporalServer
from perdure.temporal.connect import connect
from reliability.crashes.bills import Activity
from reliability.crashes.case import Environment, make_environment, run_case
from reliability.crashes.cases import Case, list_cases
from reliability.crashes.checks import FinishedConversation, find_violations, read_conversation
from reliability.crashes.normalized_log import find_differences
from reliability.crashes.points import Harm, Point
from tests.git_server import serve_git

HEARTBEAT = 5.0
"""Seconds: a worker that has little of a busy machine must not be taken for lost."""

CHOSEN: tuple[tuple[Harm, str], ...] = (
    ("kill", "after llm.chat: model.chat 0 "),
    ("kill", "after tool.call: tool pay"),
    ("lose", "after log.append: store.create events/"),
)

CHOSEN_OF_A_START: tuple[tuple[Harm, str], ...] = (
    ("kill", "before workspace.clone: sandbox.launch"),
    ("kill", "before workspace.clone: store.create workspace/"),
    ("kill", "after workspace.clone: store.create events/"),
    ("kill", "after tool.call: store.replace_version state/"),
    ("kill", "after memory.ingest: store.create memory/"),
    ("freeze", "before tool.call: store.create memory/"),
    ("lose", "after tool.call: store.create memory/"),
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


@pytest.mark.longest
async def test_a_start_with_all_that_its_user_has_is_the_same_although_its_worker_was_lost(
    temporal_server: TemporalServer, tmp_path: Path
) -> None:
    (tmp_path / "repositories").mkdir()
    with serve_git(tmp_path / "repositories") as server:
        url = server.create("private/project", {"README": "Hello.", "AGENTS.md": "Be brief."})
        temporal = await connect(temporal_server.address)
        place = make_environment(temporal, tmp_path, HEARTBEAT, shape="start", repository=url)
        undisturbed = await read_conversation(place.store, await run_case(place))
        assert await find_violations(place.store, undisturbed, undisturbed) == []
        await _laws_of_its_user_can_be_broken(place, undisturbed)
        chosen = list(_chosen(undisturbed.played.points, CHOSEN_OF_A_START))
        seen = await asyncio.gather(*(_seen(place, case) for case in chosen))
    assert [item.played.reached for item in seen] == [True] * 7
    assert [await find_violations(place.store, undisturbed, item) for item in seen] == [[]] * 7


def _chosen(points: list[Point], chosen: Sequence[tuple[Harm, str]] = CHOSEN) -> Iterator[Case]:
    every = list(list_cases(points))
    for harm, text in chosen:
        case = next(
            item for item in every if item.harm == harm and str(item.point).startswith(text)
        )
        # Another disk takes longer to come to; that of a machine which stands still nobody has.
        yield replace(case, elsewhere=case.harm == "freeze")


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
    [*_, bill] = played.bills
    busy = Counter([Activity(bill.activity_id, "llm.chat")])
    late = replace(played, bills=[*played.bills, bill], timeouts=busy)
    assert not await find_violations(place.store, good, FinishedConversation(late, good.entries))
    for entries in (good.entries[:-1], [*good.entries[:-2], *reversed(good.entries[-2:])]):
        log = FinishedConversation(played, entries).told
        assert find_differences(good.told, log, [])


async def _laws_of_its_user_can_be_broken(place: Environment, good: FinishedConversation) -> None:
    user = good.played.user
    assert user is not None
    assert user.budgets == ["12", "7"]
    assert any('"version":2,"text":"The user pays in crowns."' in it for it in user.memories)
    for wrong in (
        replace(user, memories=[*user.memories, user.memories[0]]),
        replace(user, found=user.found[1:]),
        replace(user, values=["plan: None"]),
        replace(user, budgets=["12", "7", "7"]),
    ):
        seen = FinishedConversation(replace(good.played, user=wrong), good.entries)
        assert len(await find_violations(place.store, good, seen)) == 1


def test_logs_differ_by_their_texts_but_not_by_lost_calls() -> None:
    log = {"MessageEvent 1": {"text": "Pay."}, "answer c": {"kind": "ObservationEvent"}}
    lost = {**log, "answer c": {"kind": "AgentErrorEvent"}}
    assert find_differences(log, log, []) == []
    assert find_differences(log, lost, [])
    assert find_differences(log, lost, ["answer c"]) == []
    assert find_differences(log, {**lost, "MessageEvent 1": {"text": "Do."}}, ["answer c"])
