"""A gateway that is lost in mid-stream, and its client at another one."""

import httpx
import pytest

from perdure.gateway.gateway import Gateway
from perdure.settings.settings import Settings
from tests.gateway.ag_ui.judges import judge
from tests.gateway.ag_ui.stage import WORDS, AgUiStage, Event, ask, find, parse_events, said, user
from tests.gateway.stage import serve_gateway

pytestmark = pytest.mark.long


async def read_until(response: httpx.Response, count: int) -> list[Event]:
    """Read events of a stream until there were so many."""
    text = ""
    async for part in response.aiter_text():
        text += part
        if len(events := parse_events(text.rpartition("\n\n")[0])) >= count:
            return events
    return []


async def test_a_run_goes_on_at_another_gateway_with_the_same_events(
    ag_ui_stage: AgUiStage,
) -> None:
    stage, body = ag_ui_stage.gateway, ask(user("Will you be lost?"))
    settings: Settings = stage.gateway.settings
    headers = {"Authorization": stage.anna.headers["Authorization"]}
    async with (
        serve_gateway(Gateway(stage.harness.client, settings)) as url,
        httpx.AsyncClient(base_url=url, headers=headers, timeout=60) as client,
        client.stream("POST", "/ag-ui/speaker", json=body) as response,
    ):
        begun = await read_until(response, 6)
    assert len(find(begun, "TEXT_MESSAGE_CONTENT")) >= 2
    joined = await ag_ui_stage.run("speaker", body)
    judge(joined)
    assert said(joined) == WORDS
    told = [event for event in joined if event["type"] != "MESSAGES_SNAPSHOT"]
    assert told[: len(begun)] == begun
    stage.gateway.turns._turns.clear()  # as a third gateway reads it
    assert await ag_ui_stage.run("speaker", body) == joined
    assert await ag_ui_stage.count_messages(body["threadId"]) == 1


async def test_a_stream_that_breaks_ends_with_an_error(ag_ui_stage: AgUiStage) -> None:
    body = ask(user("Sleep."))
    async with ag_ui_stage.stream("sleeper", body) as events:
        begun = [await anext(events), await anext(events)]
        await ag_ui_stage.gateway.gateway.turns.close()  # as at the end of a process
        told = [*begun, *[event async for event in events]]
    judge(told)
    assert (told[-1]["type"], told[-1]["code"]) == ("RUN_ERROR", "unreachable")
    await ag_ui_stage.gateway.anna.post(f"/v1/conversations/{body['threadId']}/interrupt")
