"""`perdure batch export`, and `perdure export` with a batch's name."""

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from perdure.evaluation.sample import conversation_id
from perdure.storage.keys import conversation_prefix, event_key
from tests.cli.command import CompletedCommand
from tests.cli.past_batch import (
    BATCH_NAME,
    LOST_CONVERSATION_ID,
    InProcessCommand,
    record_batch,
    store_environment,
    store_only_command,
)

TEN, FIRST_NINE, NINE = (
    conversation_id(BATCH_NAME, *item) for item in (("10", 0), ("9", 0), ("9", 0, 1))
)


def questions_of(command: CompletedCommand) -> list[str]:
    """Return the first user message of each document in the results format."""
    return [document["messages"][1]["content"] for document in command.lines]


def test_a_file_has_a_line_for_each_sample_in_order_and_lost_conversations_are_named(
    run_command: InProcessCommand,
) -> None:
    result, every, mixed = (
        run_command("batch", "export", BATCH_NAME, "--format", "results"),
        run_command("batch", "export", BATCH_NAME, "--format", "results", "--all-attempts"),
        run_command("export", FIRST_NINE, BATCH_NAME, "--format", "results"),
    )
    assert [command.code for command in (result, every, mixed)] == [1, 1, 1]
    assert questions_of(result) == ["10, try 0", "9, try 1"]
    assert questions_of(every) == ["10, try 0", "9, try 0", "9, try 1"]
    assert questions_of(mixed) == ["9, try 0", "10, try 0", "9, try 1"]
    assert result.err.startswith(
        f"{LOST_CONVERSATION_ID} has no log and is left out: 'lost', epoch 0, attempt 0."
    )


def test_a_folder_gets_a_file_for_each_conversation(
    run_command: InProcessCommand, tmp_path: Path
) -> None:
    pages, theirs = tmp_path / "pages", tmp_path / "theirs"
    run_command("export", BATCH_NAME, "--format", "html", "--output", f"{pages}")
    run_command("export", BATCH_NAME, "--format", "openhands", "--output", f"{theirs}")
    assert {path.name for path in pages.iterdir()} == {f"{TEN}.html", f"{NINE}.html"}
    names = {path.replace("-", "") for path in (TEN, NINE)}
    assert {path.name for path in theirs.iterdir()} == names


@pytest.mark.long
async def test_an_inspect_export_is_one_log_with_every_sample(
    batch_folder: Path, tmp_path: Path
) -> None:
    output = tmp_path / "sums.eval"
    result = await store_only_command(batch_folder)(
        "export", BATCH_NAME, "--format", "inspect", "--output", f"{output}"
    )
    assert result.code == 1
    assert (
        f"{LOST_CONVERSATION_ID} of 'lost' is a sample without messages: It has no log."
        in result.err
    )
    files = read_archive(output)
    samples = {
        sample["id"]: sample for name, sample in files.items() if name.startswith("samples/")
    }
    assert list(samples) == ["10", "9", "lost"]
    assert [len(sample["messages"]) for sample in samples.values()] == [3, 3, 0]
    assert [sample.get("error", {}).get("message") for sample in samples.values()] == [
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
    record_batch(tmp_path)
    key = conversation_prefix("local", TEN) + event_key(TEN, 3)
    (tmp_path / "store" / key).write_bytes(b"?")
    output = tmp_path / "sums.eval"
    command = ("batch", "export", BATCH_NAME, "--format", "inspect", "--output", f"{output}")
    result = InProcessCommand(store_environment(tmp_path), monkeypatch, capsys)(*command)
    assert result.code == 1
    assert f"{TEN} of '10': The object of seq 3 is damaged" in result.err
    files = read_archive(output)
    damaged = files["samples/10_epoch_1.json"]
    assert damaged["store"]["perdure"]["unreadable"] == "These events cannot be read: 3."
    assert damaged["scores"]["exact"]["value"] is True
    assert len(files["samples/9_epoch_1.json"]["messages"]) == 3


def test_an_impossible_export_is_refused_in_a_sentence(
    run_command: InProcessCommand, tmp_path: Path
) -> None:
    output = tmp_path / "x"
    unknown, neither, twice, html = (
        run_command("export", "nope", TEN, "--format", "raw", "--output", f"{output}"),
        run_command("export", "a b", "--format", "raw"),
        run_command("batch", "export", BATCH_NAME, "--format", "inspect", "--all-attempts"),
        run_command("batch", "export", BATCH_NAME, "--format", "html"),
    )
    assert [command.code for command in (unknown, neither, twice, html)] == [3, 2, 2, 2]
    assert "There is no conversation and no batch 'nope'.\nThere are sums." in unknown.err
    assert "neither a conversation id" in neither.err
    assert "one attempt for each epoch" in twice.err
    assert "--output FOLDER" in html.err
    assert not output.exists()


def read_archive(output: Path) -> dict[str, Any]:
    with zipfile.ZipFile(output) as archive:
        return {name: json.loads(archive.read(name)) for name in archive.namelist()}
