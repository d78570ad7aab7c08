"""Secrets in the terminal are available only to the command that names them."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from perdure.secrets.registry import Secrets
from perdure.tools.tool import Context
from tests.tools.talking import Terminal, output_of, talk, text_of_result

__all__ = ["talk"]

TOKEN = "tok-9f'8\"e 7$d\\6c\n5b4a39281706"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "secrets"
    folder.mkdir()
    (folder / "TOKEN").write_text(TOKEN)
    (folder / "OTHER").write_text("quite another value")
    return folder


@pytest.fixture
def lending(talk: Terminal, folder: Path) -> Terminal:
    """A conversation whose agent may use TOKEN, and one that nobody has set."""
    context = replace(
        talk.place.context, secrets=Secrets(folder).lend(("TOKEN", "frame", "MISSING"))
    )
    talk.place.context = context
    return talk


async def line(talk: Terminal, command: str) -> str:
    return (await talk.run_ok(command)).removesuffix("\n")


def length_of(name: str) -> str:
    return f"python3 -c \"import os; print(len(os.environ.get('{name}', '')))\""


async def test_a_command_that_names_a_secret_has_its_value(lending: Terminal) -> None:
    assert await line(lending, length_of("TOKEN")) == f"{len(TOKEN)}"
    assert await line(lending, 'echo "${#TOKEN}"') == f"{len(TOKEN)}"


async def test_no_other_command_has_it(lending: Terminal) -> None:
    await lending.run_ok(": $TOKEN")
    assert await line(lending, "env | grep -c '^TOK' || true") == "0"
    assert await line(lending, "declare -p | grep -c TOK[E]N || true") == "0"


async def test_the_earlier_value_of_a_variable_is_restored(lending: Terminal, folder: Path) -> None:
    (folder / "frame").write_text("a picture's frame")
    await lending.run_ok("export fram''e=mine")
    assert await line(lending, "echo ${#frame}") == "17"
    assert await line(lending, 'v=fram; v=${v}e; echo "${!v}"') == "mine"


async def test_a_secret_of_the_worker_that_the_agent_may_not_use_is_not_given(
    lending: Terminal,
) -> None:
    assert await line(lending, 'echo "[$OTHER]"') == "[]"


async def test_a_printed_value_is_masked_by_its_name(lending: Terminal) -> None:
    assert await line(lending, 'printf %s "$TOKEN"') == "<secret:TOKEN>"
    assert await line(lending, 'printf %s "$TOKEN" | base64 -w 20') == "<secret:TOKEN>"
    whole = await line(lending, "export -p | grep -A 1 TOKEN")
    assert "9281706" not in whole


async def test_a_value_that_comes_in_two_parts_is_masked(lending: Terminal) -> None:
    command = 'printf %s "${TOKEN:0:9}"; sleep 0.3; printf %s "${TOKEN:9}"'
    assert await line(lending, command) == "<secret:TOKEN>"
    assert all("tok-9" not in text for text in lending.place.progress)


async def test_the_whole_output_is_kept_without_values(lending: Terminal) -> None:
    command = 'for i in {1..3000}; do echo "line $i: $TOKEN"; done'
    observation = await lending.run(command)
    output = await lending.place.stored(observation.full_output_save_dir)
    assert output.count(b"<secret:TOKEN>") == 3000
    assert b"9281706" not in output


async def test_a_prompt_is_shown_to_its_end(lending: Terminal) -> None:
    """Even where it ends as a value begins."""
    observation = await lending.with_short_timeouts().run("read -p 'now tok-' answer")
    while "tok-" not in output_of(observation):
        observation = await lending.with_short_timeouts().type("")
    await lending.type("done")


async def test_an_input_that_is_a_secret_s_name_types_its_value(
    lending: Terminal, folder: Path
) -> None:
    (folder / "TOKEN").write_text("typed-by-hand")
    started = await lending.with_short_timeouts().run("read answer; echo got ${#answer}, $answer")
    assert started.exit_code == -1
    assert "got 13, <secret:TOKEN>" in text_of_result(await lending.type("$TOKEN"))


async def test_a_secret_without_a_value_is_asked_for(lending: Terminal) -> None:
    observation = await lending.run("curl -H $MISSING example.org")
    assert observation.is_error
    assert "The secret MISSING has no value on this worker" in text_of_result(observation)
    assert "PERDURE_SECRET_MISSING" in text_of_result(observation)


async def test_the_value_is_on_no_command_line(lending: Terminal, folder: Path) -> None:
    (folder / "TOKEN").write_text("look-for-this-one")
    seen = await line(lending, ": $TOKEN; grep -lsa look-for-this /proc/[0-9]*/cmdline | wc -l")
    assert int(seen) <= 1  # grep's own


async def test_an_interrupt_takes_it_back(lending: Terminal) -> None:
    task = lending.start('echo "have $TOKEN"; sleep 1000')
    while not any("have" in text for text in lending.place.progress):
        await asyncio.sleep(0.01)
    task.cancel()
    await asyncio.wait({task})
    assert await line(lending, "env | grep -c '^TOK' || true") == "0"
    assert all("9281706" not in text for text in lending.place.progress)


async def test_new_values_count_at_once_and_old_ones_stay_masked(
    lending: Terminal, folder: Path
) -> None:
    (folder / "TOKEN").write_text("the-first-value")
    await lending.run_ok("kept=$TOKEN")
    (folder / "TOKEN").write_text("the-second-value")
    assert await line(lending, 'echo "$kept, $TOKEN, ${#TOKEN}"') == (
        "<secret:TOKEN>, <secret:TOKEN>, 16"
    )


def test_no_value_is_in_a_context(lending: Terminal) -> None:
    context: Context = lending.place.context
    context.secrets.values_named_in("$TOKEN")
    assert "9281706" not in repr(context)
