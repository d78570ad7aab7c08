"""`perdure answer` and `perdure signal`, as people type them."""

import asyncio
from collections.abc import Callable
from uuid import uuid4

import pytest

from tests.cli.command import Perdure, model_options, tool_call_answer

pytestmark = pytest.mark.long

Script = Callable[..., str]

TOOLS = ("--tools", "wait,ask_user,finish")
DONE = {"content": "Done."}


async def test_a_question_ends_the_turn_and_its_answer_goes_on(
    perdure: Perdure, script: Script
) -> None:
    question = tool_call_answer("ask_user", question="Which colour?", choices=["red", "blue"])
    options = (*TOOLS, *model_options(script(question, DONE)))
    ran = await perdure("run", "Go.", *options, "-ojson")
    assert (ran.code, ran.json["status"]) == (4, "waiting_for_answer")
    name = ran.json["conversation_id"]
    assert ran.json["detail"]["wait"]["choices"] == ["red", "blue"]
    shown, status, listed = await asyncio.gather(
        perdure("answer", name), perdure("status", name), perdure("ls", "--limit", "9", "-ojson")
    )
    assert (shown.code, shown.out) == (4, "Which colour?\n  1. red\n  2. blue\n")
    assert f"perdure answer {name} TEXT" in shown.err
    assert f"waits for    your answer: `perdure answer {name} TEXT`\n" in status.out
    assert "asks         Which colour?\n" in status.out
    [entry] = [item for item in listed.json if item["id"] == name]
    assert entry["wait"]["question"] == "Which colour?"
    answered = await perdure("answer", name, "2", "-ojson")
    assert (answered.code, answered.json["answer"]) == (0, "blue")
    watched, again = await asyncio.gather(
        perdure("watch", name, "--until-rest"), perdure("answer", name, "red", "-ojson")
    )
    assert "The user answers: blue" in watched.out
    assert (again.code, again.error["code"]) == (4, "conflict")


async def test_a_signal_is_sent_with_data_and_to_nobody_it_is_refused(
    perdure: Perdure, script: Script
) -> None:
    wait = tool_call_answer("wait", signal="paid", **{"for": "1w"})
    ran = await perdure(
        *("run", "Go.", "--detach", "-ojson"), *TOOLS, *model_options(script(wait, DONE))
    )
    name = ran.json["conversation_id"]
    async with asyncio.timeout(60):
        while (status := await perdure("status", name, "-ojson")).json["status"] != "waiting":
            await asyncio.sleep(0.2)
    assert status.json["detail"]["wait"]["signal"] == "paid"
    kept = await perdure("signal", name, "sent", "--id", "1")
    assert "kept for the next wait" in kept.err
    bad, unnamed, nobody = await asyncio.gather(
        perdure("signal", name, "paid", "--data", "{amount", "-ojson"),
        perdure("signal", name, "no name", "-ojson"),
        perdure("signal", str(uuid4()), "paid", "-ojson"),
    )
    assert (bad.code, unnamed.code, nobody.code) == (2, 2, 3)
    assert bad.error["message"].startswith("--data is no JSON (")
    assert unnamed.error["message"].startswith("'no name' is no name of a signal")
    taken = await perdure("signal", name, "paid", "--data", '{"amount": 12}', "-ojson")
    assert (taken.code, taken.json["taken"]) == (0, True)
    watched = await perdure("watch", name, "--until-rest")
    assert 'user        signal paid: {"amount": 12}\n' in watched.out
    await perdure("close", name)
    async with asyncio.timeout(60):
        while (late := await perdure("signal", name, "paid", "-ojson")).code == 0:
            await asyncio.sleep(0.2)
    assert (late.code, late.error["code"]) == (4, "conflict")
