"""Turns that the official client is told of, over real servers."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from acp.exceptions import RequestError

from perdure.agent.policies import Confirmation
from perdure.client.protocol import ConversationClient
from tests.acp.stage import open_editor
from tests.harness import ConversationHarness, remove_chunk_delay, text_answer, tool_call_answer

pytestmark = pytest.mark.long

USAGE = {"prompt_tokens": 7, "completion_tokens": 3}
TASKS = [{"title": "Add.", "status": "done"}, {"title": "Tell.", "status": "in_progress"}]
TOOLS = ("tests.example_tools:TOOLS", "file_editor", "task_tracker", "think", "finish")
ADD = ("add", {"a": 2, "b": 3})
EDIT = ("file_editor", {"command": "create", "path": "sum.txt", "file_text": "5\n"})
PLAN = ("task_tracker", {"command": "plan", "task_list": TASKS})
WORDS = "one two three four five six seven eight nine ten eleven twelve"


async def test_a_session_from_its_first_prompt_to_its_replay(
    client: ConversationClient, world: ConversationHarness, tmp_path: Path
) -> None:
    agent = world.spec(
        tool_call_answer(ADD, EDIT, PLAN, content="I add.", reasoning_content="Two numbers."),
        {"content": WORDS, "chunk_delay": 0.1, "usage": USAGE},
        tool_call_answer(("fail", {"why": "No."})),
        tool_call_answer(("finish", {"message": "It failed."})),
        tools=TOOLS,
    )
    async with open_editor(client, agent) as run:
        name = await run.open(tmp_path)
        first = await run.prompt(name, "2 + 3?")
        assert first.stop_reason == "end_turn"
        assert first.usage is not None
        assert first.usage.total_tokens == 10
        assert run.editor.text() == f"I add.{WORDS}"
        assert len(run.editor.of_kind("agent_message_chunk")) > 4
        assert run.editor.text("agent_thought_chunk") == "Two numbers."
        [plan] = run.editor.of_kind("plan")
        assert [entry["status"] for entry in plan["entries"]] == ["completed", "in_progress"]
        diffs = [
            content
            for update in run.editor.of_kind("tool_call_update")
            for content in update.get("content", ())
            if content["type"] == "diff"
        ]
        assert diffs == [{"type": "diff", "path": f"{tmp_path}/sum.txt", "newText": "5\n"}]
        await run.prompt(name, "Fail.")
        assert run.editor.of_kind("tool_call_update")[-1]["status"] == "failed"
        assert run.editor.text().endswith("It failed.")
        seen = run.editor.updates.copy()
    async with open_editor(client, agent) as run:
        await run.agent.load_session(cwd=str(tmp_path), session_id=name)
        assert run.editor.text("user_message_chunk") == "2 + 3?Fail."
        told = [update for update in whole(run.editor.updates) if "user" not in update[0]]
        assert told == whole(seen)


def whole(updates: list[tuple[str, dict[str, Any]]]) -> list[tuple[str, Any]]:
    """Return updates without what is told at the end of a request, with texts put together."""
    found: list[tuple[str, Any]] = []
    for _, update in updates:
        kind = update["sessionUpdate"]
        if kind in ("available_commands_update", "usage_update"):
            continue
        if kind.endswith("chunk"):
            text = update["content"]["text"]
            if found and found[-1][0] == kind:
                found[-1] = (kind, found[-1][1] + text)
            else:
                found.append((kind, text))
        else:
            found.append((kind, update))
    return found


async def test_a_turn_under_way_is_told_of_to_who_loads_it_and_takes_a_prompt(
    client: ConversationClient, world: ConversationHarness
) -> None:
    agent = world.spec(
        tool_call_answer(("look", {"seconds": 3.0})), text_answer("Seen."), text_answer("Both.")
    )
    async with open_editor(client, agent, is_cut_off=True) as run:
        name = await run.open()
        asking = asyncio.create_task(run.prompt(name, "Look."))
        await run.editor.wait_for("tool_call")
    asking.cancel()
    async with open_editor(client, agent) as run:
        await run.agent.load_session(cwd="/work", session_id=name)
        assert run.editor.text() == ""
        done = await run.prompt(name, "And?")
        assert done.stop_reason == "end_turn"
        kinds = [update["status"] for update in run.editor.of_kind("tool_call_update")]
        assert kinds == ["in_progress", "completed"]
        assert run.editor.text().startswith("Seen.")
    entries = await client.conversation(name).log.read(0, 100)
    assert len([entry for entry in entries if entry.event.kind == "ObservationEvent"]) == 1


async def test_a_cancelled_prompt_says_so_and_the_next_one_is_answered(
    client: ConversationClient, world: ConversationHarness
) -> None:
    agent = world.spec({"content": WORDS, "chunk_delay": 60})
    async with open_editor(client, agent) as run:
        name = await run.open()
        asking = asyncio.create_task(run.prompt(name, "Sleep."))
        while (await client.conversation(name).log.end()) < 3:
            await asyncio.sleep(0.05)
        with pytest.raises(RequestError, match="at work") as refused:
            await run.prompt(name, "And?")
        assert refused.value.code == -32600
        await run.agent.cancel(session_id=name)
        assert (await asking).stop_reason == "cancelled"
        remove_chunk_delay(agent)
        assert (await run.prompt(name, "Wake up.")).stop_reason == "end_turn"
        assert run.editor.text().endswith(WORDS)


async def test_a_prompt_that_is_cancelled_at_once_is_cancelled(
    client: ConversationClient, world: ConversationHarness
) -> None:
    agent = world.spec({"content": WORDS, "chunk_delay": 60})
    async with open_editor(client, agent) as run:
        name = await run.open()
        asking = asyncio.create_task(run.prompt(name, "Sleep."))
        await asyncio.sleep(0)
        await run.agent.cancel(session_id=name)
        assert (await asking).stop_reason == "cancelled"
    assert (await client.conversation(name).status()).status == "idle"


CALLS = tool_call_answer(ADD, ("add", {"a": 1, "b": 1}), usage=USAGE)


async def test_a_person_is_asked_for_what_waits(
    client: ConversationClient, world: ConversationHarness
) -> None:
    agent = world.spec(
        *(CALLS, CALLS, CALLS, text_answer("Done."), CALLS, text_answer("Again.")),
        confirmation=Confirmation(policy="always"),
    )
    choices: list[str | None] = ["allow_once", "reject_once", "allow_once", "allow_always"]
    async with open_editor(client, agent, choices) as run:
        name = await run.open()
        done = await run.prompt(name, "Add.")
        assert done.stop_reason == "end_turn"
        assert done.usage is not None
        assert done.usage.total_tokens == 30  # of all its answers, whatever it has waited for
        assert run.editor.text() == "Done."
        assert len(run.editor.asked) == 4  # the last two were always allowed
        ends = [update["status"] for update in run.editor.of_kind("tool_call_update")]
        assert ends.count("completed") == 5
        assert ends.count("failed") == 1
    async with open_editor(client, agent) as run:  # another process knows what is always allowed
        await run.agent.resume_session(cwd="/work", session_id=name)
        await run.editor.wait_for("available_commands_update")
        assert run.editor.kinds() == ["available_commands_update"]
        assert (await run.prompt(name, "Once more.")).stop_reason == "end_turn"
        assert run.editor.asked == []


async def test_a_person_who_cancels_rejects_all(
    client: ConversationClient, world: ConversationHarness
) -> None:
    agent = world.spec(CALLS, text_answer("Well."), confirmation=Confirmation(policy="always"))
    async with open_editor(client, agent, ["allow_once", None]) as run:
        name = await run.open()
        assert (await run.prompt(name, "Add.")).stop_reason == "cancelled"
        ends = [update["status"] for update in run.editor.of_kind("tool_call_update")]
        assert [end for end in ends if end != "in_progress"] == ["failed", "failed"]
        assert (await run.prompt(name, "Then say something.")).stop_reason == "end_turn"
        assert run.editor.text() == "Well."


async def test_what_waits_is_asked_for_when_a_session_is_loaded(
    client: ConversationClient, world: ConversationHarness
) -> None:
    call = tool_call_answer(ADD)
    agent = world.spec(call, text_answer("5."), confirmation=Confirmation(policy="always"))
    async with open_editor(client, agent, is_cut_off=True) as run:
        name = await run.open()
        asking = asyncio.create_task(run.prompt(name, "Add."))
        await run.editor.wait_for("permission")
    asking.cancel()
    async with open_editor(client, agent, ["allow_once"]) as run:
        await run.agent.load_session(cwd="/work", session_id=name)
        await run.editor.wait_for("agent_message_chunk")
        assert run.editor.text() == "5."
        [(session_id, asked, _)] = run.editor.asked
        assert (session_id, asked.title) == (name, "add")


async def test_what_somebody_else_approves_is_waited_for_no_more(
    client: ConversationClient, world: ConversationHarness
) -> None:
    call = tool_call_answer(ADD)
    agent = world.spec(call, text_answer("5."), confirmation=Confirmation(policy="always"))
    async with open_editor(client, agent) as run:
        name = await run.open()
        asking = asyncio.create_task(run.prompt(name, "Add."))
        await run.editor.wait_for("permission")
        _, asked, _ = run.editor.asked[0]
        await client.conversation(name).respond(True, [asked.tool_call_id])
        assert (await asking).stop_reason == "end_turn"
        assert run.editor.text() == "5."


async def test_a_prompt_that_no_worker_takes_up_says_so_and_is_cancelled_all_the_same(
    harness: ConversationHarness,
) -> None:
    async with open_editor(harness.client, harness.spec(text_answer("Never."))) as run:
        name = await run.open()
        asking = asyncio.create_task(run.prompt(name, "Is anybody there?"))
        await run.editor.wait_for("agent_thought_chunk")
        assert "No worker has taken it up" in run.editor.text("agent_thought_chunk")
        await run.agent.cancel(session_id=name)
        assert (await asking).stop_reason == "cancelled"
    async with open_editor(harness.client, harness.spec()) as run:  # and it is there
        await run.agent.load_session(cwd="/work", session_id=name)
