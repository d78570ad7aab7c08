"""`perdure discuss` and `perdure discussion`."""

import asyncio
import json
from pathlib import Path
from uuid import uuid4

import pytest

from perdure.storage.s3 import S3Store
from tests.cli.command import Perdure
from tests.cli.conftest import ADAS_ANSWERS


@pytest.mark.long
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


@pytest.mark.long
async def test_agents_of_a_discussion_may_be_named(
    perdure: Perdure, behind_gateway: Perdure, discussion_spec: str, tmp_path: Path
) -> None:
    spec = Path(discussion_spec)
    model = 'model = "scripted:ada.json"'
    assert model in spec.read_text()
    spec.write_text(spec.read_text().replace(model, 'agent = "drinker"'))
    agents = {"drinker": {"model": f"scripted:{tmp_path / 'ada.json'}"}}
    named = perdure.with_env(PERDURE_AGENTS=json.dumps(agents))
    done = await named("discuss", discussion_spec)
    assert (done.code, done.out.splitlines()[-1]) == (0, "vote: tea 2, coffee 0; winner: tea")
    for stranger in (perdure, behind_gateway):  # the gateway has others
        refused = await stranger("discuss", discussion_spec, "--detach", "-o", "json")
        assert (refused.code, refused.error["code"]) == (2, "invalid"), refused
        assert "There is no agent 'drinker'" in refused.error["message"]


@pytest.mark.long
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


@pytest.mark.long
async def test_a_discussion_is_verified_and_deleted_with_its_conversations(
    perdure: Perdure, discussion_spec: str, store: S3Store
) -> None:
    session = f"tea-{uuid4()}"
    assert (await perdure("discuss", discussion_spec, "--id", session)).code == 0
    conversations = (await perdure("discussion", "status", session, "-o", "json")).json
    ada = conversations["conversations"]["ada"]
    whole = await perdure("discussion", "verify", session)
    assert (whole.code, "whole" in whole.out) == (0, True)
    key = f"users/local/discussions/{session}/events/000002.json"
    body = await store.read(key)
    assert body is not None
    await store.replace(key, body.replace(b"tea", b"ale"))
    damaged = await perdure("discussion", "verify", session, "-o", "json")
    assert damaged.code == 1
    assert [it["seq"] for it in damaged.json[0]["findings"]] == [2]
    everything = await perdure("verify", "--all", "-o", "jsonl")
    assert everything.code == 1
    verdicts = {it["id"]: (it["kind"], it["whole"]) for it in everything.lines}
    assert verdicts[session] == ("discussion", False)
    assert verdicts[ada] == ("conversation", True)
    await store.replace(key, body)

    assert (await perdure("discussion", "rm", session)).code == 4  # nobody can be asked
    assert (await perdure("show", ada)).code == 0
    done = await perdure("discussion", "rm", session, "--yes", "-o", "json")
    assert done.code == 0, done.err
    assert done.json["purged"][0] == session
    assert ada in done.json["objects"]
    assert await store.list(f"users/local/discussions/{session}/") == []
    for words in (("show", ada), ("discussion", "watch", session), ("discussion", "rm", session)):
        assert (await perdure(*words)).code == 3
    assert session not in (await perdure("discussion", "ls")).out


@pytest.mark.long
async def test_a_discussion_that_runs_is_deleted_by_force_alone(
    perdure: Perdure, discussion_spec: str, tmp_path: Path
) -> None:
    slow = [{"content": ADAS_ANSWERS[0], "delay": 60}, *ADAS_ANSWERS[1:]]
    (tmp_path / "ada.json").write_text(json.dumps({"answers": slow}))
    session = (await perdure("discuss", discussion_spec, "--detach")).out.strip()
    refused = await perdure("discussion", "rm", session, "--yes", "-o", "json")
    assert (refused.code, refused.error["code"]) == (4, "conflict")
    forced = await perdure("discussion", "rm", session, "--yes", "--force")
    assert forced.code == 0, forced.err
    assert (await perdure("discussion", "status", session)).code == 3
