"""Commands through a gateway, with its address and a key alone."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from uuid import uuid4

import pytest

from tests.cli.command import HOLD, Perdure, interrupt, model_options, release, tool_call_answer

pytestmark = pytest.mark.long

READS = [
    ("show", "ID", "-o", "jsonl"),
    ("show", "ID", "--full"),
    ("show", "ID", "--agent"),
    ("show", "ID", "--seq", "3"),
    ("show", "ID", "--kind", "MessageEvent", "-o", "json"),
    ("watch", "ID", "--until-rest", "-o", "json"),
    ("watch", "ID", "--until-rest", "--after", "4"),
    ("diff", "ID"),
    ("diff", "ID", "--stat"),
    ("diff", "ID", "-o", "json"),
    ("files", "ID", "-o", "json"),
    ("share", "ID", "-o", "json"),
    ("export", "ID", "--format", "raw"),
    ("export", "ID", "--format", "openai"),
    ("export", "ID", "--format", "html"),
    ("export", "ID", "--format", "atif"),
    ("ls", "--tag", "TAG", "-o", "json"),
    ("ls", "--tag", "TAG", "--sort", "oldest"),
    ("ls", "--tag", "TAG", "--text", "list the"),
    ("ls", "--status", "stuck", "--tag", "TAG", "-o", "jsonl"),
    ("ls", "--shared", "-o", "json"),
    ("batch", "status", "--shared", "-o", "json"),
]

REFUSED_READS = [
    ("show", "ffffffff"),
    ("show", "not-an-id"),
    ("show", "00000000-0000-7000-8000-000000000000"),
    ("show", "ID", "--seq", "999"),
    ("status", "anna/00000000-0000-7000-8000-000000000000"),
    ("status", "00000000-0000-7000-8000-000000000000"),
    ("send", "00000000-0000-7000-8000-000000000000", "Hello."),
    ("approve", "ID"),
    ("fork", "ID", "--at", "999"),
    ("configure", "ID", "tools=[]"),
    ("share", "ID", "local"),
    ("share", "ID", "a/b"),
    ("batch", "share", "anna/sums", "ben"),
    ("batch", "results", "anna/sums"),
    ("fork", "anna/00000000-0000-7000-8000-000000000000"),
    ("export", "ID", "--format", "nothing"),
    ("ls", "--status", "odd"),
]

DISCUSSION_READS = [
    ("watch", "SESSION", "-o", "jsonl"),
    ("watch", "SESSION", "--after", "4"),
    ("status", "SESSION", "-o", "json"),
    ("export", "SESSION"),
    ("export", "SESSION", "--format", "html"),
    ("ls",),
    ("ls", "--shared"),
    ("share", "SESSION", "-o", "json"),
    ("close", "SESSION"),
    ("status", "nothing"),
    ("status", "anna/SESSION"),
    ("say", "../x", "Hello."),
    ("export", "SESSION", "--format", "pdf"),
]


@pytest.fixture
async def recorded(perdure: Perdure, script: Callable[..., str]) -> tuple[str, str]:
    """The id and the tag of a conversation that has changed a file of its own folder."""
    tag = f"tag-{id(script)}"
    model = script(
        tool_call_answer("terminal", command="echo one > first.txt; echo two > second.txt"),
        {"content": "Here is the list."},
    )
    done = await perdure(
        "run", "List the files.", *model_options(model), "--tag", tag, "-o", "json"
    )
    assert done.code == 0, done.err
    return done.json["conversation_id"], tag


@pytest.mark.longest
@pytest.mark.timeout(300)
async def test_what_is_read_is_the_same_as_from_the_servers(
    perdure: Perdure, behind_gateway: Perdure, recorded: tuple[str, str]
) -> None:
    name, tag = recorded
    for words in READS:
        arguments = [name if it == "ID" else tag if it == "TAG" else it for it in words]
        near, far = await asyncio.gather(perdure(*arguments), behind_gateway(*arguments))
        assert (far.code, far.out) == (near.code, near.out), (arguments, far.err)


@pytest.mark.longest
@pytest.mark.timeout(300)
async def test_what_is_refused_is_refused_in_the_same_words(
    perdure: Perdure, behind_gateway: Perdure, recorded: tuple[str, str]
) -> None:
    for words in REFUSED_READS:
        arguments = [recorded[0] if it == "ID" else it for it in words]
        near, far = await asyncio.gather(perdure(*arguments), behind_gateway(*arguments))
        assert near.code not in (0, 1), words
        assert (far.code, far.out, far.err) == (near.code, near.out, near.err), words


async def test_a_status_is_the_workflows_but_for_the_folder_of_another_machine(
    perdure: Perdure, behind_gateway: Perdure, recorded: tuple[str, str]
) -> None:
    near = (await perdure("status", recorded[0], "-o", "json")).json
    far = (await behind_gateway("status", recorded[0], "-o", "json")).json
    assert {**far, "workspace": None} == {**near, "workspace": None}
    assert far["workspace"] is None


async def test_files_are_copied_from_the_gateway(
    behind_gateway: Perdure, recorded: tuple[str, str], tmp_path: Path
) -> None:
    copied = await behind_gateway("files", recorded[0], "--copy", str(tmp_path / "copy"))
    assert copied.code == 0, copied.err
    assert (tmp_path / "copy" / "first.txt").read_text() == "one\n"
    again = await behind_gateway("files", recorded[0], "--copy", str(tmp_path / "copy"))
    assert again.code == 4


@pytest.mark.timeout(300)
async def test_a_conversation_is_run_steered_and_ended(
    behind_gateway: Perdure, script: Callable[..., str]
) -> None:
    perdure, model = (
        behind_gateway,
        script(
            {"content": "One."},
            tool_call_answer("terminal", command="echo hi"),
            {"content": "Two."},
            {"content": "Three."},
        ),
    )
    options = (*model_options(model), "--confirm", "always")
    started = await perdure("run", "First.", *options, "-o", "json")
    assert (started.code, started.json["answer"]) == (0, "One."), started.err
    name = started.json["conversation_id"]
    asked = await perdure("send", name[:13], "Second.", "--wait", "-o", "json")
    assert (asked.code, asked.json["status"]) == (4, "waiting_for_confirmation"), asked.err
    approved = await perdure("approve", name, "-o", "json")
    assert approved.code == 0, approved.err
    watched = await perdure("watch", name, "--until-rest", "-o", "json")
    assert watched.json[-1]["source"] == "agent"
    for words in (
        ("note", name, "--title", "A title", "--tag", "one"),
        ("configure", name, "confirmation.policy=never"),
        ("condense", name),
    ):
        done = await perdure(*words)
        assert done.code == 0, (words, done.err)
    last = await perdure("send", name, "Third.", "--print")
    assert (last.code, last.out) == (0, "Three.\n"), last.err
    forked = await perdure("fork", name, "-o", "json")
    assert forked.code == 0, forked.err
    assert (await perdure("ask", name, "What?")).out.startswith("ANSWER")
    assert (await perdure("status", "@", "-o", "json")).json["conversation_id"] == (
        forked.json["conversation_id"]
    )
    closed = await perdure("close", name)
    assert closed.code == 0, closed.err
    while (await perdure("status", name, "-o", "json")).json["status"] != "closed":
        pass
    refused = await perdure("send", name, "Fourth.")
    assert (refused.code, "is closed" in refused.err) == (4, True)


async def test_a_running_turn_is_left_and_interrupted(
    perdure: Perdure, behind_gateway: Perdure, script: Callable[..., str]
) -> None:
    model = script(tool_call_answer("terminal", command=HOLD), {"content": "Done."})
    async with behind_gateway.start("run", "Hold.", *model_options(model), "-o", "jsonl") as run:
        assert run.stdout is not None
        head = (await run.stdout.readline()).decode()
        name = head.split('"')[3]
        while b'"ActionEvent"' not in await run.stdout.readline():
            pass
        left = await interrupt(run)
    assert left.code == 130
    assert f"perdure watch {name}" in left.err
    await release(perdure)
    watched = await behind_gateway("watch", name, "--until-rest", "-o", "json")
    assert watched.code == 0, watched.err


async def test_a_chat_goes_on_through_the_gateway(
    behind_gateway: Perdure, script: Callable[..., str]
) -> None:
    model = script({"content": "One."}, {"content": "Two."})
    first = await behind_gateway("chat", *model_options(model), stdin="First.\n/status\n/cost\n")
    assert first.code == 0, first.err
    assert "One." in first.out
    second = await behind_gateway("chat", "--last", stdin="Second.\n/diff\n/undo\n")
    assert (second.code, "Two." in second.out) == (0, True), second.err


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("rm", "ffffffff", "--yes"), "it does not work through a gateway"),
        (("verify", "--all"), "it does not work through a gateway"),
        (("reopen", "--all"), "it does not work through a gateway"),
        (("worker",), "is about this machine and its servers"),
        (("dev",), "is about this machine and its servers"),
        (("doctor",), "is about this machine and its servers"),
    ],
)
async def test_a_command_that_needs_the_servers_refuses_in_a_sentence(
    perdure: Perdure, words: tuple[str, ...], sentence: str
) -> None:
    refused = await perdure("--gateway", "https://perdure.example.org", *words)
    assert refused.code == 2
    assert sentence in refused.err


async def test_a_gateway_that_is_not_there_has_an_exit_code_of_its_own(
    behind_gateway: Perdure,
) -> None:
    far = behind_gateway.without_env("PERDURE_GATEWAY")
    gone = await far("--gateway", "http://127.0.0.1:9", "ls", "-o", "json")
    assert (gone.code, gone.error["code"]) == (6, "unreachable")
    address = behind_gateway.env["PERDURE_GATEWAY"]
    assert (await far("--gateway", address, "ls", "-n", "1")).code == 0
    wrong = await far.with_env(PERDURE_GATEWAY_KEY="pk_wrong")("--gateway", address, "ls")
    assert (wrong.code, "no valid key" in wrong.err) == (4, True)
    none = await far.without_env("PERDURE_GATEWAY_KEY")("--gateway", address, "ls")
    assert (none.code, "PERDURE_GATEWAY_KEY" in none.err) == (2, True)


@pytest.mark.parametrize(
    "reads", [DISCUSSION_READS[::4], pytest.param(DISCUSSION_READS, marks=pytest.mark.longest)]
)
@pytest.mark.timeout(300)
async def test_a_discussion_is_started_read_and_steered(
    perdure: Perdure,
    behind_gateway: Perdure,
    discussion_spec: str,
    tmp_path: Path,
    reads: list[tuple[str, ...]],
) -> None:
    session = f"tea-{uuid4()}"
    done = await behind_gateway("discuss", discussion_spec, "--id", session)
    assert done.code == 0, done.err
    assert done.out.splitlines()[-1] == "vote: tea 2, coffee 0; winner: tea"
    for words in reads:
        arguments = [it.replace("SESSION", session) for it in words]
        near, far = await asyncio.gather(
            perdure("discussion", *arguments), behind_gateway("discussion", *arguments)
        )
        assert (far.code, far.out, far.err) == (near.code, near.out, near.err), words
    for name, command in (("near", perdure), ("far", behind_gateway)):
        folder = str(tmp_path / name)
        messages = ("export", session, "--format", "results", "--output", folder)
        assert (await command("discussion", *messages)).code == 0
    assert (tmp_path / "far" / "ada.json").read_text() == (
        tmp_path / "near" / "ada.json"
    ).read_text()
