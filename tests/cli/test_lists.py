"""`perdure ls`, `rm`, ids as people type them, and their completion, with the store alone."""

import asyncio
import fcntl
import os
import pty
import struct
import subprocess
import termios
import time
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyte
import pytest
import pytest_asyncio

from perdure.agent.loop.evolve import fold
from perdure.agent.loop.state import State
from perdure.agent.spec import ModelSpec
from perdure.cli.rendering.conversation_table import format_age, shortest_unique_length
from perdure.events.event import AnyEvent
from perdure.events.projection import summarize
from perdure.storage.files import FileStore
from perdure.storage.log.event_log import EventLog
from perdure.storage.store import Store
from tests.builders import (
    ORIGIN,
    SPEC,
    agent,
    opened_event,
    prompt,
    spec_event,
    state_update,
    user,
)
from tests.cli.command import PERDURE_COMMAND, CompletedCommand
from tests.cli.past_batch import InProcessCommand, store_environment, store_only_command
from tests.storage.test_conversations import uuid_at

HOUR = 3_600_000


@pytest.fixture
def store(tmp_path: Path) -> FileStore:
    return FileStore(tmp_path / "store")


@pytest_asyncio.fixture
async def ids(store: FileStore) -> list[str]:
    """Conversations of three hours ago, of two, and of now: the last is at work."""
    now = time.time_ns() // 1_000_000
    names = [uuid_at(now - 3 * HOUR), uuid_at(now - 2 * HOUR), uuid_at(now)]
    await write(store, names[0], "Count the ants.", tag="nightly")
    await write(store, names[1], "Count the bees.\nAll of them, please.", title="Bees")
    await write(store, names[2], "Look for wasps.", at_rest=False)
    return names


async def write(
    store: Store,
    name: str,
    words: str,
    tag: str = "",
    title: str = "",
    at_rest: bool = True,
    model: ModelSpec = SPEC.model,
) -> None:
    log = EventLog(store, "local", name)
    spec = SPEC.model_copy(update={"tags": (tag,) if tag else (), "model": model})
    events: list[AnyEvent] = [opened_event(), spec_event(spec), prompt(), user(words)]
    if title:
        events.append(state_update("title", title))
    if at_rest:
        events.append(agent("Done."))
    written = await log.append(events, base=0, origin=ORIGIN)
    if at_rest:
        state = fold(State(), [summarize(entry) for entry in written])
        await log.save_state(state.model_dump_json().encode())


@pytest.fixture
def perdure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> InProcessCommand:
    return InProcessCommand(store_environment(tmp_path), monkeypatch, capsys)


def names_of(done: CompletedCommand) -> list[str]:
    assert done.code == 0, done
    return [entry["id"] for entry in done.lines]


# A command runs a loop of its own, so these tests have none: `ids` is written before they begin.


def test_a_list_on_a_pipe_has_every_field_of_a_conversation_on_one_line(
    perdure: InProcessCommand, ids: list[str]
) -> None:
    lines = [line.split("\t") for line in perdure("ls").out.splitlines()]
    assert [line[0] for line in lines] == ids[::-1]
    assert lines[1][1:4] == ["finished", "6", "0.0000"]
    assert lines[1][5:] == ["scripted:story.json", "Bees", ""]
    assert lines[2][6:] == ["Count the ants.", "nightly"]


def test_the_model_is_known_while_the_agent_is_at_work(
    perdure: InProcessCommand, ids: list[str]
) -> None:
    newest = perdure("ls", "-n1", "-ojson").json[0]
    assert (newest["id"], newest["status"], newest["events"]) == (ids[2], "running", 4)
    assert newest["model"] == "scripted:story.json"
    assert newest["title"] == "Look for wasps."
    assert newest["last_event"].endswith("+00:00")


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--status", "finished"], [1, 0]),
        (["--status", "awaits you"], [1, 0]),
        (["--status", "awaiting-user"], [1, 0]),
        (["--status", "limited"], []),
        (["--status", "running"], [2]),
        (["--tag", "nightly"], [0]),
        (["--agent", "nobody"], []),
        (["--app", "nothing"], []),
        (["--active"], [2, 1, 0]),
        (["--tag", "nightly", "--tag", "other"], []),
        (["--model", "STORY"], [2, 1, 0]),
        (["--model", "gpt"], []),
        (["--text", "count the"], [1, 0]),
        (["--text", "bees please"], [1]),
        (["--since", "150m"], [2, 1]),
        (["--sort", "oldest", "--limit", "2"], [0, 1]),
        (["--sort", "events"], [1, 0, 2]),
        (["--sort", "status"], [1, 0, 2]),
    ],
    ids=lambda value: " ".join(map(str, value)),
)
def test_a_list_has_what_its_filters_let_pass_in_the_order_asked_for(
    perdure: InProcessCommand, ids: list[str], options: list[str], expected: list[int]
) -> None:
    assert names_of(perdure("ls", "-ojsonl", *options)) == [ids[nth] for nth in expected]


@pytest.mark.parametrize("options", [["--status", "asleep"], ["--since", "yesterday"]])
def test_a_filter_that_makes_no_sense_is_refused(
    perdure: InProcessCommand, options: list[str]
) -> None:
    done = perdure("ls", *options)
    assert (done.code, done.out) == (2, "")
    assert options[1] in done.err


@pytest.mark.usefixtures("ids")
def test_a_list_without_a_match_says_so(perdure: InProcessCommand) -> None:
    assert perdure("ls", "--tag", "none").err == "No conversation matches.\n"


def test_a_list_of_many_says_that_it_reads_them(perdure: InProcessCommand, tmp_path: Path) -> None:
    folder = tmp_path / "store/users/local/conversations"
    for moment in range(300):
        path = folder / uuid_at(moment) / "blobs/x"
        path.parent.mkdir(parents=True)
        path.touch()
    assert "300 conversations" in perdure("ls", "--sort", "cost").err


def test_an_id_may_be_abbreviated_or_left_out(perdure: InProcessCommand, ids: list[str]) -> None:
    spellings = {ids[0][:13]: 0, ids[0].upper(): 0, ids[1][:20]: 1, "@": 2, "--last": 2}
    for spelling, nth in spellings.items():
        [first, *_] = perdure("show", spelling, "-ojsonl", "--limit", "4").lines[3:]
        text = first["llm_message"]["content"][0]["text"]
        assert text.startswith(("Count the ants", "Count the bees", "Look for wasps")[nth])
    verified = perdure("verify", ids[0][:13], ids[1][:13], "-ojsonl")
    assert names_of(verified) == ids[:2]


def test_an_ambiguous_id_names_the_conversations_that_it_may_be(
    perdure: InProcessCommand, ids: list[str]
) -> None:
    common = ids[0][:4]
    done = perdure("show", common, "-ojson")
    assert (done.code, done.error["code"]) == (2, "invalid")
    assert all(name in done.error["message"] for name in ids)
    assert "Bees" in done.error["message"]


@pytest.mark.usefixtures("ids")
@pytest.mark.parametrize(
    ("name", "code", "said"),
    [
        ("zzzz", 2, "its first characters"),
        ("01a", 2, "at least 4"),
        ("ffff0000", 3, "No conversation's id begins with"),
        ("98201e8c-247e-4222-922d-4ec2f30c15c9", 3, "There is no conversation"),
    ],
)
def test_an_unknown_id_is_refused(
    perdure: InProcessCommand, name: str, code: int, said: str
) -> None:
    done = perdure("show", name)
    assert (done.code, said in done.err) == (code, True), done.err


def test_the_newest_of_no_conversations_is_not_found(perdure: InProcessCommand) -> None:
    done = perdure("show", "@")
    assert (done.code, "There are no conversations yet" in done.err) == (3, True)


def complete(perdure: InProcessCommand, monkeypatch: pytest.MonkeyPatch, line: str) -> str:
    """Complete the last word of the line, as zsh would."""
    monkeypatch.setenv("_TYPER_COMPLETE_ARGS", line)
    monkeypatch.setenv("_PERDURE_COMPLETE", "complete_zsh")
    done = perdure()
    assert done.err == ""
    return done.out


def test_a_shell_completes_commands_options_and_ids_with_titles(
    perdure: InProcessCommand, ids: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "status" in complete(perdure, monkeypatch, "perdure stat")
    assert "--since" in complete(perdure, monkeypatch, "perdure ls --si")
    listed = complete(perdure, monkeypatch, f"perdure show {ids[1][:13]}")
    assert ids[1] in listed
    assert "Bees (finished)" in listed
    assert ids[0] not in listed


def test_a_completion_leaves_out_what_a_shell_might_evaluate(
    perdure: InProcessCommand, store: FileStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    asyncio.run(write(store, uuid_at(1), "Say `id` \"$(id)\" '$HOME'\\."))
    listed = complete(perdure, monkeypatch, "perdure show ")
    assert "Say id (id) HOME . (finished)" in listed
    assert not set("`$\\") & set(listed)


def test_a_completion_without_a_store_prints_nothing(
    perdure: InProcessCommand, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PERDURE_STORE", "ftp://nowhere")
    assert "ftp" not in complete(perdure, monkeypatch, "perdure show 01")


def show_on_screen(tmp_path: Path, columns: int, *args: str) -> list[str]:
    """Run the command on a terminal of that width, and return the lines of its screen."""
    screen = pyte.Screen(columns, 24)
    stream = pyte.ByteStream(screen)
    terminal, side = pty.openpty()
    fcntl.ioctl(side, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    env = {**store_only_command(tmp_path).env, "TERM": "xterm-256color"}
    process = subprocess.Popen([*PERDURE_COMMAND, *args], env=env, stdin=side, stdout=side)
    os.close(side)
    with suppress(OSError):  # how a terminal ends
        while read := os.read(terminal, 65536):
            stream.feed(read)
    os.close(terminal)
    assert process.wait() == 0
    return [line.rstrip() for line in screen.display if line.strip()]


@pytest.mark.parametrize("columns", [80, 120, 200])
def test_a_list_is_as_wide_as_the_terminal(
    store: FileStore, ids: list[str], tmp_path: Path, columns: int
) -> None:
    asyncio.run(write(store, uuid_at(1), f"{'漢字 and words ' * 20}", tag="nightly"))
    header, *lines = show_on_screen(tmp_path, columns, "ls")
    assert header.split()[:3] == ["ID", "STATUS", "EVENTS"]
    assert ("MODEL" in header) == (columns > 80)
    assert [line.split()[0] for line in lines[:3]] == [name[:13] for name in ids[::-1]]
    assert len(lines) == 4, "one line each"
    assert lines[3].endswith("…")
    words = ("Look", "Bees", "Count")
    titles = {line.index(word) for line, word in zip(lines, words, strict=False)}
    assert titles == {header.index("TITLE")}


@pytest.mark.long
def test_a_wide_terminal_shows_more_of_a_models_name(store: FileStore, tmp_path: Path) -> None:
    name = f"scripted:{'folder/' * 4}story.json"
    asyncio.run(write(store, uuid_at(1), "Long", model=ModelSpec(name=name)))
    narrow, wide = (show_on_screen(tmp_path, columns, "ls") for columns in (120, 200))
    assert (name in "".join(narrow), name in "".join(wide)) == (False, True)


def test_ids_are_cut_where_they_differ() -> None:
    assert shortest_unique_length([]) == 13
    assert shortest_unique_length(["01a20635-7c39-7", "01a20635-7c39-8"]) == 15


def test_an_age_is_worded_in_its_largest_unit() -> None:
    now = datetime(2026, 11, 23, 12, tzinfo=UTC)
    ages = {
        timedelta(seconds=-3): "0 s ago",
        timedelta(seconds=59): "59 s ago",
        timedelta(minutes=3): "3 min ago",
        timedelta(hours=23, minutes=59): "23 h ago",
        timedelta(days=6): "6 d ago",
        timedelta(days=30): "2026-10-24",
    }
    for age, text in ages.items():
        assert format_age((now - age).isoformat(), now) == text
    assert format_age(None, now) == "-"
