"""`perdure discuss` and `perdure discussion`."""

import asyncio
import json
from pathlib import Path
from uuid import uuid4

import pytest

from tests.cli.command import Perdure
from tests.cli.conftest import ADAS_ANSWERS


async def test_a_discussion_is_shown_and_exported(
    perdure: Perdure, discussion_spec: str, tmp_path: Path
) -> None:
    session = f"tea-{uuid4()}"
    done = await perdure("discuss", discussion_spec, "--id", session)
    assert done.code == 0, done.err
    out = done.out.splitlines()
    assert "   4  ada: Tea is calm." in out
    assert "   2  ada  intent  urgency: 7, line: tea" in out
    assert out[-1] == "vote: tea 2, coffee 0; winner: tea"

    again = await perdure("discussion", "watch", session, "-o", "jsonl")
    exported = await perdure(
        "discussion", "export", session, "--output", str(tmp_path / "out.jsonl")
    )
    assert (again.code, exported.code) == (0, 0)
    events = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert again.lines == events
    assert [event["sequence"] for event in events] == list(range(1, len(events) + 1))
    [speech] = [event for event in events if event["type"] == "SPEECH"]
    assert list(speech) == [
        *("eventId", "type", "speaker", "content", "timestamp", "sessionId", "sequence", "meta")
    ]
    assert speech["timestamp"].endswith("Z")

    status = await perdure("discussion", "status", session, "-o", "json")
    assert status.json["tally"]["winner"] == "tea"
    for args in (["html", str(tmp_path / "out.html")], ["results", str(tmp_path / "messages")]):
        done = await perdure(
            "discussion", "export", session, "--format", args[0], "--output", args[1]
        )
        assert done.code == 0, done
    assert "Tea is calm." in (tmp_path / "out.html").read_text()
    messages = {
        path.name: json.loads(path.read_text()) for path in (tmp_path / "messages").iterdir()
    }
    assert messages.keys() == {"ada.json", "bob.json"}
    said = [message["content"] for message in messages["ada.json"]["messages"]]
    assert "Tea is calm." in said
    assert not any("You like tea." in str(message) for message in messages["bob.json"]["messages"])
    assert session in (await perdure("discussion", "ls")).out.splitlines()
    over = await perdure("discussion", "close", session, "-o", "json")
    assert (over.code, over.error["code"]) == (4, "conflict")


@pytest.mark.long
async def test_a_detached_discussion_is_steered_and_people_take_part(
    perdure: Perdure, discussion_spec: str, tmp_path: Path
) -> None:
    slow = [{"content": ADAS_ANSWERS[0], "delay": 15}, *ADAS_ANSWERS[1:]]
    (tmp_path / "ada.json").write_text(json.dumps({"answers": slow}))
    session = (await perdure("discuss", discussion_spec, "--detach")).out.strip()
    said, voted = await asyncio.gather(
        perdure("discussion", "say", session, "I pay.", "--as", "eve", "-o", "json"),
        perdure(
            *("discussion", "vote", session, "coffee", "--as", "eve", "--reason", "I work"),
            *("-o", "json"),
        ),
    )
    done = await perdure("discussion", "watch", session, "-o", "jsonl")
    assert (said.code, voted.code, done.code) == (0, 0, 0), voted
    events = done.lines
    assert events[said.json["sequence"] - 1]["content"] == "I pay."
    assert events[voted.json["sequence"] - 1]["content"] == {"ballot": "coffee", "reason": "I work"}


@pytest.mark.parametrize(
    ("args", "code", "kind"),
    [
        (["discuss", "nowhere.toml"], 2, "invalid"),
        (["discussion", "watch", "nothing"], 3, "not_found"),
        (["discussion", "say", "../x", "hello"], 2, "invalid"),
    ],
)
async def test_what_is_wrong_is_told(
    args: list[str], code: int, kind: str, configured: Perdure
) -> None:
    done = await configured(*args, "-o", "json")
    assert (done.code, done.error["code"]) == (code, kind), done
