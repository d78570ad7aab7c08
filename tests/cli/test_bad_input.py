"""Bad input and settings: each gives a sentence and the right exit code, and nothing is lost."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from perdure.client.ids import new_conversation_id
from perdure.embedded.ports import find_free_ports
from perdure.storage.conversations import list_conversations
from perdure.storage.s3 import S3Store
from tests.cli.command import CompletedCommand, Perdure, clean_environment, model_options
from tests.cli.past_batch import InProcessCommand
from tests.cli.unconditional import unconditional_server

Script = Callable[..., str]

UNKNOWN_ID = new_conversation_id()


def assert_refused(done: CompletedCommand, exit_code: int, code: str, *parts: str) -> None:
    """Check the JSON error on stdout, its message and its hint."""
    assert (done.code, done.error["code"]) == (exit_code, code), done
    text = f"{done.error['message']} {done.error['hint']}"
    assert all(item in text for item in parts), text


@pytest.mark.long
async def test_without_a_temporal_server_nothing_is_started(
    configured: Perdure, script: Script, store: S3Store
) -> None:
    before = await list_conversations(store, "local", 1000)
    [port] = find_free_ports(1)
    away = configured.with_env(TEMPORAL_ADDRESS=f"127.0.0.1:{port}")
    run, send = await asyncio.gather(
        away("run", "Go.", *model_options(script({"content": "Gone."})), "-ojson"),
        away("send", UNKNOWN_ID, "Hello?", "-ojson"),
    )
    for done in (run, send):
        assert_refused(
            done, 6, "unreachable", f"127.0.0.1:{port}", "perdure dev", "TEMPORAL_ADDRESS"
        )
    assert await list_conversations(store, "local", 1000) == before


@pytest.mark.long
async def test_without_settings_or_a_stack_the_error_says_how_to_start_one(tmp_path: Path) -> None:
    bare = Perdure({**clean_environment(), "PERDURE_DATA": str(tmp_path)})
    listed, ran, doctor = await asyncio.gather(
        bare("ls", "-ojson"),
        bare("run", "Go.", "--model", "openai/x", "--detach", "-ojson"),
        bare("doctor", "-ojson"),
    )
    assert_refused(listed, 6, "unreachable", str(tmp_path), "perdure dev", "PERDURE_STORE")
    assert_refused(ran, 6, "unreachable", "perdure dev")
    assert doctor.code == 0, "the installation is whole"
    assert {item["check"]: item["ok"] for item in doctor.json} == {
        "versions": True,
        "data": True,
        "sandbox": True,
        "stack": True,
    }
    [stack] = [item for item in doctor.json if item["check"] == "stack"]
    assert "`perdure dev` starts one" in stack["message"]


async def test_a_temporal_server_without_a_store_is_a_finding_of_the_doctor(tmp_path: Path) -> None:
    env = {"PERDURE_DATA": str(tmp_path), "TEMPORAL_ADDRESS": "127.0.0.1:1"}
    doctor = await Perdure({**clean_environment(), **env})("doctor")
    assert doctor.code == 2
    assert "failed  stack" in doctor.out
    assert "PERDURE_STORE" in doctor.out


@pytest.mark.long
async def test_a_refused_store_is_reported_before_anything_is_started(
    configured: Perdure, script: Script
) -> None:
    model = model_options(script({"content": "Gone."}))
    no_bucket, no_key, no_url = await asyncio.gather(
        configured.with_env(PERDURE_STORE="s3://no-such-bucket")("run", "Go.", *model, "-ojson"),
        configured.with_env(AWS_SECRET_ACCESS_KEY="wrong")("run", "Go.", *model, "-ojson"),
        configured.with_env(PERDURE_STORE="ftp://somewhere")("ls", "-ojson"),
    )
    assert_refused(no_bucket, 2, "store_refused", "no-such-bucket", "create the bucket")
    assert_refused(no_key, 2, "store_refused", "AWS_SECRET_ACCESS_KEY")
    assert_refused(no_url, 2, "invalid", "ftp://somewhere", "s3://bucket/prefix", "PERDURE_STORE")


@pytest.mark.long
async def test_a_store_without_conditional_put_is_detected(configured: Perdure) -> None:
    with unconditional_server() as server:
        unsafe = configured.with_env(AWS_ENDPOINT_URL_S3=server.endpoint)
        doctor, worker = await asyncio.gather(unsafe("doctor", "-ojson"), unsafe("worker"))
    [store] = [item for item in doctor.json if item["check"] == "store"]
    assert store["exit_code"] == 2
    assert "ignores If-None-Match" in store["message"]
    assert worker.code != 0
    assert "ignores If-None-Match" in worker.err


@pytest.mark.long
async def test_a_message_that_cannot_be_recorded_is_refused_before_it_is_sent(
    configured: Perdure,
) -> None:
    large = "x" * 3_000_000
    model = ("--model", "openai/x")
    for args, stdin, parts in (
        (("run", "-", *model), large, "the limit is 98,304"),
        (("send", UNKNOWN_ID, "-"), large, "the limit is 98,304"),
        (("run", " ", *model), "", "The message is empty"),
        (("send", UNKNOWN_ID, ""), "", "The message is empty"),
    ):
        assert_refused(await configured(*args, "-ojson", stdin=stdin), 2, "invalid", parts)


@pytest.mark.long
async def test_an_unknown_conversation_is_not_found(configured: Perdure) -> None:
    commands = (
        ("show", UNKNOWN_ID),
        ("watch", UNKNOWN_ID, "--until-rest"),
        ("status", UNKNOWN_ID),
        ("send", UNKNOWN_ID, "Hello?"),
        ("pause", UNKNOWN_ID),
        ("close", UNKNOWN_ID),
    )
    for done in await asyncio.gather(*(configured(*item, "-ojson") for item in commands)):
        assert_refused(done, 3, "not_found", UNKNOWN_ID, "perdure ls")
    assert_refused(
        await configured("show", "../../etc", "-ojson"), 2, "invalid", "its first characters"
    )


@pytest.mark.long
async def test_a_closed_conversation_takes_no_message(perdure: Perdure, script: Script) -> None:
    path = script({"content": "one"})
    ran = await perdure("run", "Go.", *model_options(path), "-ojson")
    name = ran.json["conversation_id"]
    assert (await perdure("close", name)).code == 0
    watched = await perdure("watch", name, "--until-rest", "-ojson")
    while watched.json[-1].get("value") != "closed":
        watched = await perdure("watch", name, "--until-rest", "-ojson")
    for command in (("send", name, "More."), ("resume", name), ("pause", name)):
        assert_refused(await perdure(*command, "-ojson"), 4, "conflict", "is closed", "--reopen")


@pytest.mark.parametrize(
    ("args", "parts"),
    [
        (("run", "Go."), ("No model is set", "--model", "PERDURE_MODEL", "--script")),
        (("run", "Go.", "--model", "m", "--tools", "grepp"), ("no tool 'grepp'", "terminal")),
        (("run", "Go.", "--model", "m", "--id", "one"), ("'one' is not a UUID",)),
        (("run", "Go.", "--script", "no.json"), ("no.json cannot be read",)),
        (("run", "Go.", "--script", "no.json", "--detach"), ("--model scripted:",)),
        (("watch", UNKNOWN_ID), ("-o jsonl or --until-rest",)),
    ],
)
def test_mistakes_in_the_command_line_are_refused_at_once(
    run_configured: InProcessCommand, args: tuple[str, ...], parts: tuple[str, ...]
) -> None:
    done = run_configured(*args, "-ojson")
    assert_refused(done, 2, done.error["code"], *parts)


async def test_an_unknown_setting_is_refused_by_name(configured: Perdure) -> None:
    done = await configured.with_env(PERDURE_STROE="s3://x")("ls", "-ojson")
    assert_refused(done, 2, "settings", "PERDURE_STROE", "PERDURE_STORE")


@pytest.mark.long
async def test_errors_go_to_stderr_for_people_and_to_stdout_for_programs(
    configured: Perdure,
) -> None:
    person, program, usage = await asyncio.gather(
        configured("show", UNKNOWN_ID),
        configured("show", UNKNOWN_ID, "-ojsonl"),
        configured("show"),
    )
    assert (person.out, person.code) == ("", 3)
    assert UNKNOWN_ID in person.err
    assert (program.err, program.code) == ("", 3)
    assert (usage.out, usage.code) == ("", 2)
    assert "See `perdure show --help`" in usage.err
