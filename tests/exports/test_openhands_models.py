"""Exports are read by openhands-sdk's own models: `make openhands`, with Python 3.12."""

import json
import os
import subprocess
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain, groupby
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from perdure.activities.support.resources import Resources
from perdure.agent.view.transcript import Transcript
from perdure.client.client import Client
from perdure.embedded.temporal import TemporalServer
from perdure.events.entry import parse_entry
from perdure.events.event import AnyEvent
from perdure.exports.openhands import OPENHANDS, openhands_event
from perdure.models.router import ModelRouter
from perdure.storage.files import FileStore
from perdure.temporal.connect import connect
from tests.builders import CONVERSATION
from tests.exports.checks import export_files
from tests.exports.openhands_environment import PYTHON, ready
from tests.exports.sample_log import ABOUT, sample_entries
from tests.harness import ConversationHarness, text_answer, tool_call_answer
from tests.logs import add_events, build_view
from tests.openhands import load_cases, translate

pytestmark = pytest.mark.skipif(
    not ready(), reason="NOT CHECKED: openhands-sdk is not installed, see `make openhands`"
)

READER = Path(__file__).with_name("openhands_reader.py")
OPENER = Path(__file__).with_name("openhands_opener.py")
GOLDEN = Path(__file__).parents[1] / "golden" / "events"

Turn: TypeAlias = tuple[str, list[str], str | None]
"""Role, calls, and the call it answers."""


def read_with_openhands(folder: Path, *logs: Sequence[AnyEvent]) -> list[dict[str, Any]]:
    """Read exported logs with openhands' models; no fault and no loss is allowed."""
    exported = [[openhands_event(event) for event in log] for log in logs]
    source, taken = folder / "exported.json", folder / "read.json"
    source.write_text(json.dumps(exported))
    run_with_openhands(folder, READER, str(source), str(taken))
    readings: list[dict[str, Any]] = json.loads(taken.read_text())
    assert [wrong for reading in readings for wrong in reading["wrong"]] == []
    model_events = [reading["events"] for reading in readings]
    assert list(_lost(exported, model_events)) == []
    return readings


def run_with_openhands(folder: Path, script: Path, *arguments: str) -> None:
    """Run a script in the environment of openhands-sdk."""
    alone = {"PATH": os.environ["PATH"], "HOME": str(folder)}
    quiet = {"OPENHANDS_SUPPRESS_BANNER": "1", "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    command = [str(PYTHON), "-I", str(script), *arguments]
    done = subprocess.run(
        command, cwd=folder, env=alone | quiet, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def _lost(ours: Any, theirs: Any, at: str = "") -> Iterator[str]:
    """Find fields of ours that their models drop: they pass over what they do not
    know in a message, a tool or a task."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        for name, value in ours.items():
            yield from _lost(value, theirs.get(name, "nothing"), f"{at}.{name}")
    elif isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        if at.endswith("forgotten_event_ids"):
            ours, theirs = sorted(ours), sorted(theirs)
        for nth, (mine, other) in enumerate(zip(ours, theirs, strict=True)):
            yield from _lost(mine, other, f"{at}[{nth}]")
    elif ours != theirs:
        yield f"{at}: {ours!r} was read as {theirs!r}"


def golden() -> list[AnyEvent]:
    return [parse_entry(0, path.read_bytes()).event for path in sorted(GOLDEN.glob("*.json"))]


@pytest.fixture(scope="module")
def readings(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """Read the golden events as one log, and each case that OpenHands computed."""
    logs = [translate(case["events"]) for case in load_cases("view")]
    return read_with_openhands(tmp_path_factory.mktemp("exported"), golden(), *logs)


@pytest.mark.long
def test_openhands_reads_every_kind_and_every_field(readings: list[dict[str, Any]]) -> None:
    assert len(readings[0]["events"]) == len(golden()) > 0


def test_an_export_has_the_view_and_messages_of_openhands_own_events(
    readings: list[dict[str, Any]],
) -> None:
    """The two texts that differ are ones that our events were given: the cases do not name them."""
    ours = {"sys": "Be careful.", "Action rejected: no": "Action rejected: not on a Friday"}
    for case, reading in zip(load_cases("view"), readings[1:], strict=True):
        expected = case["expect"]
        assert reading["view"] == expected["view"], case["name"]
        assert [
            [message["role"], len(message["calls"]), message["answers"], message["text"]]
            for message in reading["messages"]
        ] == [[*rest, ours.get(text, text)] for *rest, text in expected["messages"]], case["name"]


@pytest.mark.long
def test_openhands_opens_an_exported_folder(tmp_path: Path) -> None:
    log = [entry for entry in sample_entries() if entry.seq != 13]
    for name, body in export_files(OPENHANDS, replace(ABOUT, status="closed"), log).items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(body)
    taken = tmp_path / "opened.json"
    run_with_openhands(tmp_path, OPENER, str(tmp_path), CONVERSATION, str(taken))
    facts = json.loads(taken.read_text())
    assert facts["ids"] == [item.event.id for item in log]
    assert facts["shown"] == [event.id for event in build_view(item.event for item in log).events]
    assert (facts["status"], facts["cost"], facts["model"]) == ("finished", 2.125, "openai/gpt-x")


BUILT_IN = ("terminal", "file_editor", "task_tracker", "think", "finish")

STORY = (
    tool_call_answer(
        ("think", {"thought": "Look first."}), reasoning_content="Hm.", content="I look."
    ),
    tool_call_answer(
        ("terminal", {"command": "echo seen"}),
        ("file_editor", {"command": "create", "path": "a.txt", "file_text": "a\n"}),
        ("add", {"a": 2, "b": 3}),
    ),
    tool_call_answer(("add", {"a": "two"}), ("fail", {"why": "it must"}), ("vanish", {})),
    tool_call_answer(("task_tracker", {"command": "plan", "task_list": [{"title": "All of it"}]})),
    text_answer("Half of it is done."),
    tool_call_answer(("terminal", {"command": "false"})),
    tool_call_answer(("finish", {"message": "Done."})),
)

TOLD = {
    "ConversationStateUpdateEvent",
    "SystemPromptEvent",
    "MessageEvent",
    "RecallEvent",
    "ActionEvent",
    "ObservationEvent",
    "AgentErrorEvent",
}


@pytest.mark.long
async def test_a_recorded_conversation_is_read_and_shown_unchanged(
    temporal_server: TemporalServer, tmp_path: Path
) -> None:
    events = await _recorded(await _house(temporal_server, tmp_path), tmp_path)
    assert {event.kind for event in events} >= TOLD
    [reading] = read_with_openhands(tmp_path, events)
    assert reading["view"] == [event.id for event in build_view(events).events]
    assert _theirs(reading) == _ours(events)


async def _house(temporal_server: TemporalServer, folder: Path) -> ConversationHarness:
    temporal = await connect(temporal_server.address)
    store = FileStore(folder / "store")
    client = Client(temporal, store, task_queue=f"test-{uuid.uuid4()}")
    return ConversationHarness(
        client, Resources(store, ModelRouter(), folder / "workspaces"), folder
    )


async def _recorded(harness: ConversationHarness, folder: Path) -> list[AnyEvent]:
    workspace = folder / "workspace"
    workspace.mkdir()
    (workspace / "AGENTS.md").write_text("Be brief.")
    spec = harness.spec(
        *STORY,
        tools=("tests.example_tools:TOOLS", *BUILT_IN),
        workspace=str(workspace),
    )
    async with harness.worker():
        talk = await harness.client.start("Do it.", spec)
        await talk.wait_for_turn()
        await talk.send("Go on.", message_id="second")
        await talk.wait_for_turn("second")
    return [entry.event for entry in await talk.log.read(0, await talk.log.end())]


def _theirs(reading: dict[str, Any]) -> list[Turn]:
    """Their messages, with the results in the order of their calls: theirs stand as they came."""
    messages = reading["messages"]
    places = {
        call: nth for nth, call in enumerate(chain(*(message["calls"] for message in messages)))
    }
    turns: list[Turn] = []
    for role, group in groupby(messages, key=lambda item: item["role"]):
        role_turns = [(role, item["calls"], item["answers"]) for item in group]
        turns += (
            sorted(role_turns, key=lambda turn: places[turn[2]]) if role == "tool" else role_turns
        )
    return turns


def _ours(events: Sequence[AnyEvent]) -> list[Turn]:
    """The messages our own model is sent; the user's next to each other are one, as with them."""
    transcript = Transcript()
    add_events(transcript.view, events)
    turns: list[Turn] = []
    for message in transcript.messages():
        if message["role"] != "user" or not turns or turns[-1][0] != "user":
            call_ids = [call["id"] for call in message.get("tool_calls", ())]
            turns.append((message["role"], call_ids, message.get("tool_call_id")))
    return turns
