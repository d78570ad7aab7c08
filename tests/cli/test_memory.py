"""`perdure memory`, with the store alone."""

import re
from pathlib import Path

import pytest

from tests.cli.command import Perdure, clean_environment

pytestmark = pytest.mark.long


@pytest.fixture
def perdure(tmp_path: Path) -> Perdure:
    """The command with a store of files, and neither Temporal nor a gateway."""
    env = clean_environment()
    return Perdure({**env, "PERDURE_STORE": (tmp_path / "store").as_uri(), "PERDURE_USER": "anna"})


async def test_a_memory_is_put_found_and_removed_and_another_user_has_none(
    perdure: Perdure,
) -> None:
    put = await perdure(
        *("memory", "put", "-", "--key", "colour", "--tag", "taste", "--metadata", "n=3"),
        stdin="Her favourite colour is green.",
    )
    assert put.code == 0, put.err
    name = put.out.strip()
    again = await perdure("memory", "put", "Her favourite colour is green.", "--key", "colour")
    assert again.out.strip() == name
    found = await perdure("memory", "search", "colours", "-o", "jsonl")
    [line] = found.lines
    assert (line["id"], line["version"], line["source"]) == (name, 2, "user")
    ben = perdure.with_env(PERDURE_USER="ben")
    assert (await ben("memory", "search", "colours")).err == "No memory fits.\n"
    assert (await ben("memory", "rm", name)).code == 3
    assert (await perdure("memory", "ls", "--tag", "none", "-o", "json")).json == []
    shown = await perdure("memory", "get", name)
    assert shown.out == "Her favourite colour is green.\n"
    assert re.fullmatch(r"put by you on \S+; key colour; version 2\n", shown.err)
    assert (await perdure("memory", "reindex", "-o", "json")).json == {"memories": 1}
    assert (await perdure("memory", "rm", name)).code == 0
    assert (await perdure("memory", "get", name)).code == 3


@pytest.mark.parametrize(
    ("arguments", "code", "fault"),
    [
        (("put", ""), 2, "at least 1 character"),
        (("put", "x", "--metadata", "y"), 2, "'y' is no key=value"),
        (("get", "abc"), 2, "'abc' is no id of a memory"),
        (("rm", "0199a1b2-c3d4-7e5f-8a6b-7c8d9e0f1a2b"), 3, "There is no memory 0199a1b2"),
        (("search", ""), 2, "query: string should have at least 1 character"),
        (("ls", "--source", "x"), 2, "source: input should be 'user', 'agent' or 'conversation'"),
        (("ingest", "0199a1b2-c3d4-7e5f-8a6b-7c8d9e0f1a2b"), 3, "There is no conversation"),
    ],
)
async def test_bad_input_is_answered_by_a_sentence(
    perdure: Perdure, arguments: tuple[str, ...], code: int, fault: str
) -> None:
    done = await perdure("memory", *arguments)
    assert done.code == code
    assert fault in done.err
    assert "Traceback" not in done.err


async def test_ten_megabytes_are_refused_in_a_sentence(perdure: Perdure) -> None:
    done = await perdure("memory", "put", "-", stdin="a" * 10 * 1024 * 1024)
    assert done.code == 2
    assert "65,536 bytes at most, and this one 10,485,760" in done.err


async def test_a_search_without_the_extra_says_which_command_installs_it(
    perdure: Perdure, tmp_path: Path
) -> None:
    """A module that cannot be imported stands in for a library that is not installed."""
    (tmp_path / "lancedb.py").write_text("raise ModuleNotFoundError('No module named lancedb')")
    without = perdure.with_env(PYTHONPATH=str(tmp_path))
    assert (await without("memory", "put", "It rains.")).code == 0
    assert len((await without("memory", "ls", "-o", "json")).json) == 1
    done = await without("memory", "search", "rain")
    assert done.code == 2
    assert "pip install 'perdure[memory]'" in done.err
    assert (await perdure("memory", "search", "rains", "-o", "json")).json[0]["text"] == "It rains."
