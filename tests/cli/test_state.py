"""`perdure state`, `send --reopen` and `delete`."""

import pytest

from tests.cli.command import Perdure, model_options
from tests.cli.test_control import Script

pytestmark = pytest.mark.long


async def test_the_state_is_shown_and_changed_from_a_terminal(
    perdure: Perdure, script: Script
) -> None:
    path = script({"content": "One."}, {"content": "Two."})
    ran = await perdure("run", "Go on.", *model_options(path), "-ojson")
    name = ran.json["conversation_id"]
    empty = await perdure("state", name)
    assert (empty.code, empty.out) == (0, "")
    changed = await perdure("state", name, "step=2", "user:tone=dry", 'plan={"a": [1]}', "-ojson")
    assert changed.json["values"] == {"step": 2, "user:tone": "dry", "plan": {"a": [1]}}
    version = changed.json["versions"]["user:tone"]
    newer = await perdure("state", name, "user:tone=warm", "--version", f"user:tone={version}")
    assert newer.code == 0
    assert 'user:tone = "warm"\n' in newer.out
    stale = await perdure(
        "state", name, "user:tone=cold", "--version", f"user:tone={version}", "-ojson"
    )
    assert (stale.code, stale.error["message"][:21]) == (4, "user:tone was changed")
    deleted = await perdure("state", name, "--delete", "step", "--delete", "user:tone")
    assert deleted.out == 'plan = {"a": [1]}\n'


async def test_a_wrong_change_of_the_state_is_refused(perdure: Perdure, script: Script) -> None:
    path = script({"content": "One."})
    ran = await perdure("run", "Go on.", *model_options(path), "-ojson")
    name = ran.json["conversation_id"]
    for arguments, words in {
        ("step",): "is no key=value",
        ("user:a/b=1",): "cannot be shared",
        ("a=1", "--delete", "a"): "both set and deleted",
        ("--version", "user:a=1"): "which is not changed",
        ("user:a=1", "--version", "user:a"): "is no KEY=VERSION",
    }.items():
        refused = await perdure("state", name, *arguments, "-ojson")
        assert refused.code == 2, refused
        assert words in refused.error["message"]
    unknown = await perdure("state", "00000000-0000-7000-8000-000000000000", "-ojson")
    assert unknown.code == 3


async def test_a_closed_conversation_goes_on_and_a_deleted_one_is_in_no_list(
    perdure: Perdure, script: Script
) -> None:
    other = await perdure("run", "Stay.", *model_options(script({"content": "One."})))
    assert other.code == 0
    path = script({"content": "One."}, {"content": "Two."})
    options = ("--tag", "closing", "-ojson")
    ran = await perdure("run", "Go on.", *model_options(path), *options)
    name = ran.json["conversation_id"]
    recorded = await perdure("send", name, "Later.", "--no-run")
    assert f"perdure resume {name}" in recorded.err
    assert (await perdure("close", name)).code == 0
    refused = await perdure("send", name, "More.", "--wait", "-ojson")
    assert refused.code == 4
    assert "--reopen" in refused.error["hint"]
    again = await perdure("send", name, "More.", "--wait", "--reopen", "-ojson")
    assert (again.code, again.json["answer"]) == (0, "Two.")
    assert name in (await perdure("ls", "--tag", "closing")).out
    assert (await perdure("delete", name)).code == 0
    assert (await perdure("ls", "--tag", "closing", "--hidden")).out == ""
    reindexed = await perdure("reindex", "-ojson")
    assert reindexed.json["conversations"] >= 1
    assert (await perdure("ls", "--tag", "closing", "--hidden")).out == ""
