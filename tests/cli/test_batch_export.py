"""`perdure batch export`, and `perdure export` with a batch's name."""

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from evaluation.sample import conversation_id
from storage.keys import conversation_prefix, event_key
from tests.cli.command import Ended
from tests.cli.past_batch import LOST, NAME, Within, alone, ran

TEN, FIRST_NINE, NINE = (conversation_id(NAME, *one) for one in (("10", 0), ("9", 0), ("9", 0, 1)))


def asked(ended: Ended) -> list[str]:
    """What the conversations of a file in the results format were asked."""
    return [doc["messages"][1]["content"] for doc in ended.lines]


def test_a_line_each_in_the_order_of_the_samples_and_what_is_lost_is_named(
    within: Within,
) -> None:
    told, every, mixed = (
        within("batch", "export", NAME, "--format", "results"),
        within("batch", "export", NAME, "--format", "results", "--all-attempts"),
        within("export", FIRST_NINE, NAME, "--format", "results"),
    )
    assert [one.code for one in (told, every, mixed)] == [1, 1, 1]
    assert asked(told) == ["10, try 0", "9, try 1"]
    assert asked(every) == ["10, try 0", "9, try 0", "9, try 1"]
    assert asked(mixed) == ["9, try 0", "10, try 0", "9, try 1"]
    assert told.err.startswith(f"{LOST} has no log and is left out: 'lost', epoch 0, attempt 0.")


def test_a_folder_gets_each_conversation(within: Within, tmp_path: Path) -> None:
    pages, theirs = tmp_path / "pages", tmp_path / "theirs"
    within("export", NAME, "--format", "html", "--output", f"{pages}")
    within("export", NAME, "--format", "openhands", "--output", f"{theirs}")
    assert {one.name for one in pages.iterdir()} == {f"{TEN}.html", f"{NINE}.html"}
    names = {one.replace("-", "") for one in (TEN, NINE)}
    assert {one.name for one in theirs.iterdir()} == names


async def test_inspect_gets_one_log_with_every_sample(past: Path, tmp_path: Path) -> None:
    place = tmp_path / "sums.eval"
    told = await alone(past)("export", NAME, "--format", "inspect", "--output", f"{place}")
    assert told.code == 1
    assert f"{LOST} of 'lost' is a sample without messages: It has no log." in told.err
    files = opened(place)
    samples = {one["id"]: one for name, one in files.items() if name.startswith("samples/")}
    assert list(samples) == ["10", "9", "lost"]
    assert [len(one["messages"]) for one in samples.values()] == [3, 3, 0]
    assert [one.get("error", {}).get("message") for one in samples.values()] == [
        None,
        None,
        "infrastructure: workflow_failed: It never began.",
    ]
    assert len(samples["9"]["error_retries"]) == 1
    header = files["header.json"]
    assert (header["status"], header["eval"]["model"]) == ("started", "scripted:sums.json")
    results = header["results"]
    assert (results["total_samples"], results["completed_samples"]) == (4, 2)
    [score] = results["scores"]
    assert score["metrics"]["accuracy"]["value"] == 0.5


def test_a_damaged_conversation_is_named_and_all_others_are_exported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ran(tmp_path)
    key = conversation_prefix("local", TEN) + event_key(TEN, 3)
    (tmp_path / "store" / key).write_bytes(b"?")
    place = tmp_path / "sums.eval"
    command = ("batch", "export", NAME, "--format", "inspect", "--output", f"{place}")
    told = Within(tmp_path, monkeypatch, capsys)(*command)
    assert told.code == 1
    assert f"{TEN} of '10': The object of seq 3 is damaged" in told.err
    files = opened(place)
    damaged = files["samples/10_epoch_1.json"]
    assert damaged["store"]["perdure"]["unreadable"] == "These events cannot be read: 3."
    assert damaged["scores"]["exact"]["value"] is True
    assert len(files["samples/9_epoch_1.json"]["messages"]) == 3


def test_what_cannot_be_asked_for_is_said_in_a_sentence(within: Within, tmp_path: Path) -> None:
    place = tmp_path / "x"
    unknown, neither, twice, page = (
        within("export", "nope", TEN, "--format", "raw", "--output", f"{place}"),
        within("export", "a/b", "--format", "raw"),
        within("batch", "export", NAME, "--format", "inspect", "--all-attempts"),
        within("batch", "export", NAME, "--format", "html"),
    )
    assert [one.code for one in (unknown, neither, twice, page)] == [3, 2, 2, 2]
    assert "There is no conversation and no batch 'nope'.\nThere are sums." in unknown.err
    assert "neither a conversation id" in neither.err
    assert "one attempt for each epoch" in twice.err
    assert "--output FOLDER" in page.err
    assert not place.exists()


def opened(place: Path) -> dict[str, Any]:
    with zipfile.ZipFile(place) as archive:
        return {name: json.loads(archive.read(name)) for name in archive.namelist()}
