"""What is read of a log: with the store alone, no Temporal and no worker."""

import asyncio
import json
from dataclasses import dataclass

import pytest
import pytest_asyncio

from storage.keys import STATE, conversation_prefix, event_key
from storage.s3 import S3Store
from tests.cli.command import Perdure, calls, interrupted, line_with, scripted


@dataclass(frozen=True)
class Past:
    """A conversation that took place, and a command with nothing but its store."""

    name: str
    alone: Perdure


@pytest_asyncio.fixture(scope="session")
async def past(perdure: Perdure, tmp_path_factory: pytest.TempPathFactory) -> Past:
    many = "\n".join(f"echo line {number}" for number in range(40))
    answers = (
        {**calls("terminal", command=many), "content": "Let me see."},
        {**calls("terminal", command="exit 3")},
        {"content": "That is all.", "usage": {"prompt_tokens": 1000, "cost": 0.25}},
    )
    path = tmp_path_factory.mktemp("past") / "script.json"
    path.write_text(json.dumps({"answers": answers}))
    ran = await perdure("run", "Count to forty,\nplease.", *scripted(str(path)), "-ojson")
    assert ran.code == 0, ran
    nowhere = perdure.where(TEMPORAL_ADDRESS="127.0.0.1:1")
    return Past(ran.json["result"]["conversation_id"], nowhere)


async def test_a_person_is_shown_who_did_what_in_a_few_lines(past: Past) -> None:
    shown = await past.alone("show", past.name)
    assert shown.code == 0
    assert "user        Count to forty,\n" in shown.out
    assert "agent       Let me see.\n" in shown.out
    assert "$ echo line 0\n" in shown.out
    assert "more lines ...]" in shown.out
    assert "exit code 3" in shown.out
    assert "(1,000 tokens, $0.2500, " in shown.out


@pytest.mark.long
async def test_programs_get_the_events_as_they_are_stored(past: Past) -> None:
    whole, part, kind = await asyncio.gather(
        past.alone("show", past.name, "-ojson"),
        past.alone("show", past.name, "--after", "1", "--limit", "2", "-ojsonl"),
        past.alone("show", past.name, "--kind", "ObservationEvent", "-ojsonl"),
    )
    assert [one["seq"] for one in whole.json] == list(range(9))
    assert part.lines == whole.json[2:4]
    assert [one["tool_name"] for one in kind.lines] == ["terminal", "terminal"]


@pytest.mark.long
async def test_a_kind_that_is_not_there_is_told_with_those_that_are(past: Past) -> None:
    shown = await past.alone("show", past.name, "--kind", "Observation")
    assert (shown.code, shown.out) == (0, "")
    assert "ActionEvent" in shown.err


@pytest.mark.long
async def test_a_list_tells_what_each_is_about(past: Past) -> None:
    listed, text = await asyncio.gather(
        past.alone("ls", "--limit", "99", "-ojson"), past.alone("ls", "--limit", "99")
    )
    [one] = [one for one in listed.json if one["id"] == past.name]
    assert (one["status"], one["turn"], one["events"]) == ("finished", 1, 9)
    assert one["title"] == "Count to forty, please."
    assert past.name in text.out
    assert "Count to forty, please." in text.out


@pytest.mark.long
async def test_where_it_stands_is_told_by_the_workflow_or_by_the_log(
    past: Past, perdure: Perdure
) -> None:
    asked, alone = await asyncio.gather(
        perdure("status", past.name, "-ojson"), past.alone("status", past.name, "-ojson")
    )
    assert asked.json == alone.json
    assert asked.json["spent"]["cost"] == 0.25
    assert "This is what the log says" in alone.err


async def test_nobody_minds_a_reader_who_leaves_early(past: Past) -> None:
    async with past.alone.started("show", past.name, "-ojsonl") as show:
        assert show.stdout is not None
        show.stdout._transport.close()  # type: ignore[attr-defined]
        assert show.stderr is not None
        said = await show.stderr.read()
    assert b"Traceback" not in said


@pytest.mark.long
async def test_the_doctor_finds_all_in_order_or_says_what_to_mend(perdure: Perdure) -> None:
    well, alone = await asyncio.gather(
        perdure("doctor", "-ojsonl"),
        perdure.where(PERDURE_TASK_QUEUE="nobody", PERDURE_MODEL="openai/x")("doctor"),
    )
    assert (well.code, {one["ok"] for one in well.lines}) == (0, {True})
    assert alone.code == 6
    assert "failed  worker" in alone.out
    assert "perdure worker" in alone.out
    assert "failed  model" in alone.out
    assert "OPENAI_API_KEY is not set" in alone.out


@pytest.mark.long
async def test_a_kept_state_that_cannot_be_read_keeps_nothing_from_the_list(
    past: Past, store: S3Store
) -> None:
    key = f"{conversation_prefix('local', past.name)}{STATE}"
    kept = await store.read(key)
    assert kept is not None
    await store.replace(key, b'{"next_seq": "many"}')
    listed = await past.alone("ls", "--limit", "99", "-ojson")
    await store.replace(key, kept)
    [one] = [one for one in listed.json if one["id"] == past.name]
    assert (one["title"], one["events"]) == ("Count to forty, please.", 9)


@pytest.mark.long
async def test_an_object_that_is_damaged_or_gone_is_named_and_the_rest_is_shown(
    past: Past, store: S3Store
) -> None:
    """The last test of this past."""
    prefix = conversation_prefix("local", past.name)
    await store.replace(f"{prefix}{event_key(past.name, 4)}", b"{")
    text, lines = await asyncio.gather(
        past.alone("show", past.name), past.alone("show", past.name, "-ojsonl")
    )
    assert (text.code, lines.code) == (1, 1)
    assert "The object of seq 4 is damaged: restore" in text.out
    assert "That is all." in text.out
    assert [one["seq"] for one in lines.lines] == list(range(9))
    assert lines.lines[4]["error"]["code"] == "damaged"
    async with past.alone.started("watch", past.name) as watch:
        await line_with(watch.stdout, "seq 4 is damaged")
        await line_with(watch.stdout, "That is all.")
        ended = await interrupted(watch)
    assert (ended.code, ended.err) == (130, "")
