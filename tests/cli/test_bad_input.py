"""What can be wrong with what a command is given: a sentence, the right exit code, nothing lost."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from client.ids import new_conversation_id
from embedded.process import free_ports
from storage.conversations import conversations
from storage.s3 import S3Store
from tests.cli.command import Ended, Perdure, clean_environment, scripted
from tests.cli.unconditional import unconditional_server

Script = Callable[..., str]

NOBODY = new_conversation_id()


def refused(done: Ended, exit_code: int, code: str, *said: str) -> None:
    """The error is on stdout for programs, with what is wrong and what to do."""
    assert (done.code, done.error["code"]) == (exit_code, code), done
    told = f"{done.error['message']} {done.error['hint']}"
    assert all(one in told for one in said), told


async def test_without_a_temporal_server_nothing_is_started(
    configured: Perdure, script: Script, store: S3Store
) -> None:
    before = await conversations(store, "local", 1000)
    [port] = free_ports(1)
    away = configured.where(TEMPORAL_ADDRESS=f"127.0.0.1:{port}")
    run, send = await asyncio.gather(
        away("run", "Go.", *scripted(script({"content": "Gone."})), "-ojson"),
        away("send", NOBODY, "Hello?", "-ojson"),
    )
    for done in (run, send):
        refused(done, 6, "unreachable", f"127.0.0.1:{port}", "perdure dev", "TEMPORAL_ADDRESS")
    assert await conversations(store, "local", 1000) == before


async def test_with_nothing_set_and_nothing_running_it_says_how_to_start(tmp_path: Path) -> None:
    bare = Perdure({**clean_environment(), "PERDURE_DATA": str(tmp_path)})
    listed, ran, examined = await asyncio.gather(
        bare("ls", "-ojson"),
        bare("run", "Go.", "--model", "openai/x", "--detach", "-ojson"),
        bare("doctor", "-ojson"),
    )
    refused(listed, 6, "unreachable", str(tmp_path), "perdure dev", "PERDURE_STORE")
    refused(ran, 6, "unreachable", "perdure dev")
    assert examined.code == 6
    assert {one["check"]: one["ok"] for one in examined.json} == {
        "versions": True,
        "data": True,
        "sandbox": True,
        "stack": False,
    }


@pytest.mark.long
async def test_a_store_that_refuses_is_told_before_anything_is_started(
    configured: Perdure, script: Script
) -> None:
    model = scripted(script({"content": "Gone."}))
    no_bucket, no_key, no_url = await asyncio.gather(
        configured.where(PERDURE_STORE="s3://no-such-bucket")("run", "Go.", *model, "-ojson"),
        configured.where(AWS_SECRET_ACCESS_KEY="wrong")("run", "Go.", *model, "-ojson"),
        configured.where(PERDURE_STORE="ftp://somewhere")("ls", "-ojson"),
    )
    refused(no_bucket, 2, "store_refused", "no-such-bucket", "create the bucket")
    refused(no_key, 2, "store_refused", "AWS_SECRET_ACCESS_KEY")
    refused(no_url, 2, "invalid", "ftp://somewhere", "s3://bucket/prefix", "PERDURE_STORE")


@pytest.mark.long
async def test_a_store_without_conditional_put_is_found_out(configured: Perdure) -> None:
    with unconditional_server() as server:
        unsafe = configured.where(AWS_ENDPOINT_URL_S3=server.endpoint)
        examined, worker = await asyncio.gather(unsafe("doctor", "-ojson"), unsafe("worker"))
    [store] = [one for one in examined.json if one["check"] == "store"]
    assert store["exit_code"] == 2
    assert "ignores If-None-Match" in store["told"]
    assert worker.code != 0
    assert "ignores If-None-Match" in worker.err


@pytest.mark.long
async def test_a_message_that_cannot_be_recorded_is_refused_before_it_is_sent(
    configured: Perdure,
) -> None:
    large = "x" * 3_000_000
    model = ("--model", "openai/x")
    for args, stdin, said in (
        (("run", "-", *model), large, "the limit is 98,304"),
        (("send", NOBODY, "-"), large, "the limit is 98,304"),
        (("run", " ", *model), "", "The message is empty"),
        (("send", NOBODY, ""), "", "The message is empty"),
    ):
        refused(await configured(*args, "-ojson", stdin=stdin), 2, "invalid", said)


@pytest.mark.long
async def test_a_conversation_that_is_not_there_is_not_found(configured: Perdure) -> None:
    commands = (
        ("show", NOBODY),
        ("watch", NOBODY, "--until-rest"),
        ("status", NOBODY),
        ("send", NOBODY, "Hello?"),
        ("pause", NOBODY),
        ("close", NOBODY),
    )
    for done in await asyncio.gather(*(configured(*one, "-ojson") for one in commands)):
        refused(done, 3, "not_found", NOBODY, "perdure ls")
    refused(await configured("show", "../../etc", "-ojson"), 2, "invalid", "use a UUID")


@pytest.mark.long
async def test_a_closed_conversation_takes_no_message(perdure: Perdure, script: Script) -> None:
    path = script({"content": "one"})
    ran = await perdure("run", "Go.", *scripted(path), "-ojson")
    name = ran.json["result"]["conversation_id"]
    assert (await perdure("close", name)).code == 0
    watched = await perdure("watch", name, "--until-rest", "-ojson")
    while watched.json[-1].get("value") != "closed":
        watched = await perdure("watch", name, "--until-rest", "-ojson")
    for command in (("send", name, "More."), ("resume", name), ("pause", name)):
        refused(await perdure(*command, "-ojson"), 4, "conflict", "is closed", "perdure run")


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("run", "Go."), ("No model is set", "--model", "PERDURE_MODEL", "--script")),
        (("run", "Go.", "--model", "m", "--tools", "grepp"), ("no tool 'grepp'", "terminal")),
        (("run", "Go.", "--model", "m", "--id", "one"), ("'one' is not a UUID",)),
        (("run", "Go.", "--script", "no.json"), ("no.json cannot be read",)),
        (("run", "Go.", "--script", "no.json", "--detach"), ("--model scripted:",)),
        (("watch", NOBODY), ("-o jsonl or --until-rest",)),
    ],
)
async def test_what_the_command_line_alone_tells_is_refused_at_once(
    configured: Perdure, args: tuple[str, ...], said: tuple[str, ...]
) -> None:
    done = await configured(*args, "-ojson")
    refused(done, 2, done.error["code"], *said)


async def test_a_setting_that_does_not_exist_is_refused_by_name(configured: Perdure) -> None:
    done = await configured.where(PERDURE_STROE="s3://x")("ls", "-ojson")
    refused(done, 2, "settings", "PERDURE_STROE", "PERDURE_STORE")


async def test_a_person_is_told_on_stderr_and_a_program_on_stdout(configured: Perdure) -> None:
    person, program, usage = await asyncio.gather(
        configured("show", NOBODY), configured("show", NOBODY, "-ojsonl"), configured("show")
    )
    assert (person.out, person.code) == ("", 3)
    assert NOBODY in person.err
    assert (program.err, program.code) == ("", 3)
    assert (usage.out, usage.code) == ("", 2)
    assert "See `perdure show --help`" in usage.err
