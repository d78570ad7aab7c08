"""Cells run in one kernel, whose state, images, errors and end the model is told."""

import asyncio
import base64
from dataclasses import replace
from pathlib import Path

import pytest

from perdure.sandbox.choice import choose_sandbox
from perdure.secrets.registry import Secrets
from perdure.tools.ipython import parse
from tests.tools.cells import Notebook, images_of, notebook, result, text_of
from tests.tools.processes import find_processes, wait_until

__all__ = ["notebook"]

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)

pytestmark = pytest.mark.long


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({}, "`code` is empty"),
        ({"code": " \n"}, "`code` is empty"),
        ({"code": "\0"}, "NUL"),
        ({"code": "1", "timeout": 0}, "timeout"),
    ],
)
def test_arguments_that_run_nothing_are_refused(
    arguments: dict[str, object], sentence: str
) -> None:
    with pytest.raises(ValueError, match=sentence):
        parse(arguments)


async def test_a_cell_has_the_state_of_those_before_and_shows_its_value_and_output(
    notebook: Notebook,
) -> None:
    first = await notebook.run("print('out')\nx = 20\ndef twice(n): return 2 * n\n'value'")
    assert (text_of(first), first.is_error) == ("out\nOut[1]: 'value'", False)
    (notebook.place.workspace / "mine.py").write_text("NUMBER = 2")
    assert await notebook.text("import mine\ntwice(x) + mine.NUMBER") == "Out[2]: 42"
    assert await notebook.text("!echo $((1+1)); pwd") == f"2\n{notebook.place.workspace}"
    assert await notebook.text("y = 1") == "[no output]"


async def test_an_exception_is_shown_by_a_traceback_without_colours(notebook: Notebook) -> None:
    failure = await notebook.run("def f():\n    return 1 / 0\nf()")
    assert failure.is_error
    text = text_of(failure)
    assert "----> 2     return 1 / 0" in text
    assert text.endswith("ZeroDivisionError: division by zero")
    assert "\x1b" not in text
    asked = await notebook.run("input('Name? ')")
    assert "EOFError" in text_of(asked)
    assert await notebook.text("1") == "Out[3]: 1"


async def test_images_come_back_as_images(notebook: Notebook) -> None:
    large = PNG + bytes(range(256)) * 400
    code = f"from IPython.display import Image, display\nsmall = Image({PNG!r})\ndisplay(small)\n"
    shown = await notebook.run(f"{code}Image({PNG!r} + bytes(range(256)) * 400)")
    assert text_of(shown) == "[image 1]\nOut[1]: [image 2]"
    first, second = images_of(shown)
    assert first == f"data:image/png;base64,{base64.b64encode(PNG).decode()}"
    assert base64.b64decode(second.partition(",")[2]) == large
    many = await notebook.run(
        "for _ in range(9): display(small)\nImage(small.data + b'0' * 4_000_000)"
    )
    assert len(images_of(many)) == 8
    assert "[image 9: a cell shows 8 at most]" in text_of(many)
    assert text_of(many).endswith("[image of 4,000,070 bytes: too large to be shown]")


async def test_long_output_is_cut_and_kept_whole(notebook: Notebook) -> None:
    long = await notebook.run("for n in range(20_000): print('line', n)")
    assert "characters are left out here" in text_of(long)
    assert (await notebook.place.stored(long.full_output_save_dir)).endswith(b"line 19999\n")


async def test_a_cell_at_its_time_limit_is_interrupted_and_the_kernel_stays(
    notebook: Notebook, token: str
) -> None:
    await notebook.run("x = 1")
    stopped = await notebook.run("import time\nx = 2\ntime.sleep(600)", timeout=1)
    assert (stopped.timeout, stopped.is_error, stopped.kernel_ended) == (True, True, False)
    assert "----> 3 time.sleep(600)\n\nKeyboardInterrupt" in text_of(stopped)
    assert "[The cell was interrupted: it was not done within" in text_of(stopped)
    assert await notebook.text("x") == "Out[3]: 2"
    assert (await notebook.run(f"!sleep 600; : {token}", timeout=1)).timeout
    assert not find_processes(token)


async def test_a_kernel_that_ends_is_reported_and_the_next_cell_gets_a_new_one(
    notebook: Notebook,
) -> None:
    await notebook.run("x = 1")
    killed = await notebook.run("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)")
    assert (killed.kernel_ended, killed.is_error) == (True, True)
    assert "[The kernel ended, with exit code 137: its variables" in text_of(killed)
    assert "NameError: name 'x' is not defined" in await notebook.text("x")
    deaf = "import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nwhile True: pass"
    ended = await notebook.run(deaf, timeout=1)
    assert (ended.timeout, ended.kernel_ended) == (True, True)
    assert "because the cell did not stop" in text_of(ended)


async def test_a_reset_replaces_the_kernel(notebook: Notebook) -> None:
    await notebook.run("x = 1")
    assert (await notebook.text(reset=True)).startswith("[The kernel was reset")
    assert "NameError" in await notebook.text("x")
    again = await notebook.run("1", reset=True)
    assert (text_of(again).splitlines()[-1], again.execution_count) == ("Out[1]: 1", 1)


async def test_a_cancelled_cell_is_stopped_with_what_it_started(
    notebook: Notebook, token: str
) -> None:
    await notebook.run("x = 1")
    task = asyncio.create_task(notebook.run(f"!sleep 600; : {token}"))
    await wait_until(lambda: find_processes(token))
    task.cancel()
    await asyncio.wait({task})
    assert task.cancelled()
    assert not find_processes(token)
    assert await notebook.text("x") == "Out[3]: 1"


async def test_a_secret_is_lent_to_the_cell_that_names_it_and_masked(
    notebook: Notebook, tmp_path: Path
) -> None:
    (tmp_path / "API_KEY").write_text("hunter2hunter2")
    context = await notebook.context(secrets=Secrets(tmp_path).lend(("API_KEY",)))
    shown = await notebook.text("import os\nprint(os.environ['API_KEY'])", context=context)
    assert shown == "<secret:API_KEY>"
    later = await notebook.text("len([n for n in os.environ if n.startswith('API')])")
    assert later == "Out[2]: 0"


async def test_the_cells_run_in_the_sandbox(notebook: Notebook, tmp_path: Path) -> None:
    sandbox = choose_sandbox("auto", tmp_path).sandbox
    if sandbox.name == "none":
        pytest.skip("no sandbox works here")
    outside = tmp_path / "outside"
    context = await notebook.context(sandbox=sandbox)
    code = f"open('here', 'w').close()\nopen({str(outside)!r}, 'w')"
    refused = await notebook.run(code, context=context)
    assert refused.is_error
    assert not outside.exists()
    assert (notebook.place.workspace / "here").exists()


async def test_a_kernel_lost_with_its_worker_is_reported_with_the_names_lost(
    notebook: Notebook,
) -> None:
    await notebook.record("import math\nn = 1", result(1))
    await notebook.record("open('log', 'a').write('x')\nm = 2", result(2))
    context = await notebook.context()
    lost = await notebook.text("1", context=context)
    assert lost.startswith("[A new kernel was started in the workspace: the one before is gone")
    assert "Lost names: math, n, m. No cell was run again" in lost
    assert lost.endswith("Out[1]: 1")
    assert not (notebook.place.workspace / "log").exists()
    assert await notebook.text("2", context=context) == "Out[2]: 2"


async def test_a_lost_kernel_is_made_again_where_its_cells_may_run_twice(
    notebook: Notebook,
) -> None:
    await notebook.record("n = 1", result(1))
    await notebook.record("n += 1\n1 / 0", result(2, is_error=True))
    await notebook.record("n = 50\nk = 1", "outcome_unknown")
    await notebook.record("print(n)", result(3, is_error=True))
    context = await notebook.context(replay_cells=True)
    again = await notebook.run("n", context=context)
    assert text_of(again) == (
        "[A new kernel was started in the workspace: the one before is gone, with its variables, "
        "imports, working directory and background processes. Run again in it, in order: 3 cells. "
        "Values that depend on time, chance, files or the network may differ. Not ended as before: "
        "1 cell. Left out, as stopped or of unknown outcome: 1 cell. Lost names: n, k.]\nOut[4]: 2"
    )
    assert again.execution_count == 4


async def test_a_kernel_that_cannot_be_made_again_is_not_used_half_made(
    notebook: Notebook,
) -> None:
    await notebook.record("n = 1", result(1))
    await notebook.record("exit", result(2))
    context = await notebook.context(replay_cells=True)
    with pytest.raises(Exception, match="could not be run again in a new one"):
        await notebook.run("n", context=context)
    assert "NameError" in await notebook.text("n", context=context, reset=True)


async def test_commits_of_a_cell_have_the_author_of_the_conversation(notebook: Notebook) -> None:
    context = replace(notebook.place.context, variables={"GIT_AUTHOR_NAME": "Anna"})
    cell = "import os; print(os.environ['GIT_AUTHOR_NAME'])"
    assert text_of(await notebook.run(cell, context=context)) == "Anna"
