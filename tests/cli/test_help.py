"""The help of `perdure` and its commands, and what it imports."""

import json
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import version
from inspect import get_annotations, getclosurevars
from pathlib import Path
from pkgutil import resolve_name
from typing import Any, get_args

import pytest
from typer.main import get_command

from perdure.agent.condensers import PRESET
from perdure.agent.spec import SingleCondenser
from perdure.cli.declarations.agent_fields import CONDENSER_KINDS
from perdure.cli.main import make_app, run_command_line, select_commands
from perdure.cli.options import EXPORT_FORMATS
from perdure.exports.formats import FORMATS
from tests.cli.command import clean_environment

SLOW_PACKAGES = {"asyncio", "boto3", "litellm", "pyarrow", "rich", "starlette", "temporalio"}

OUR_MODULES = {
    "perdure",
    "perdure.cli",
    "perdure.errors",
    "perdure.operations",
    "perdure.operations.process_exit",
    "perdure.operations.worker",
    "perdure.operations.worker.options",
    "perdure.wording",
} | {f"perdure.cli.{name}" for name in ("declarations", "imports", "main", "options", "runner")}
"""Our modules that a help may import: none of them defines a pydantic model."""

OTHER_WORK = {"perdure.agent.loop.evolve", "perdure.storage.log.verify", "perdure.testing.script"}
"""Modules that `show` needs for `--agent`, or that `verify` needs."""

PRINT_IMPORTS = """
import json, sys
from perdure.cli.main import run_command_line
for words in json.loads(sys.argv[1]):
    assert run_command_line([*words, "--help"]) == 0, words
print(json.dumps(sorted(sys.modules)), file=sys.stderr)
"""

PRINT_IMPORTS_OF_RUN = """
import json, sys
from perdure.cli.main import run_command_line
assert run_command_line(json.loads(sys.argv[1])) in (0, 3)
print(json.dumps(sorted(sys.modules)), file=sys.stderr)
"""


def list_commands(group: object, *path: str) -> list[list[str]]:
    """List the words of each command and group below `group`."""
    words = []
    for name, command in getattr(group, "commands", {}).items():
        words += [[*path, name], *list_commands(command, *path, name)]
    return words


COMMANDS = list_commands(get_command(make_app()))


@pytest.fixture
def print_of(capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Run a command line in this process, and return what it prints."""

    def run(*args: str, code: int = 0) -> str:
        assert run_command_line([*args]) == code
        printed = capsys.readouterr()
        return printed.err if code else printed.out

    return run


def modules_after_help(*commands: list[str]) -> set[str]:
    run = [sys.executable, "-c", PRINT_IMPORTS, json.dumps(commands)]
    done = subprocess.run(run, capture_output=True, text=True, check=True)
    return set(json.loads(done.stderr))


@pytest.mark.long
def test_no_help_imports_a_slow_package_or_the_work_of_a_command() -> None:
    assert ["run"] in COMMANDS
    assert ["batch", "compare"] in COMMANDS
    modules = modules_after_help([], *COMMANDS)
    assert not {name.partition(".")[0] for name in modules} & SLOW_PACKAGES
    ours = {name for name in modules if name.partition(".")[0] == "perdure"}
    assert {name for name in ours if "perdure.cli.declarations." not in name} == OUR_MODULES


def test_the_list_of_commands_does_without_pydantic_too() -> None:
    # Typer has pydantic parse the options before a command's name, so the other helps cannot.
    assert "pydantic" not in modules_after_help([])


@pytest.mark.parametrize("path", [(), ("batch",)], ids=["perdure", "batch"])
def test_the_help_of_a_group_lists_each_command_with_the_first_line_of_its_help(
    path: tuple[str, ...], print_of: Callable[..., str]
) -> None:
    listed = " ".join(print_of(*path, "--help").split())
    assert path or "5 timed out (the work goes on)" in listed
    for words in COMMANDS:
        if tuple(words[:-1]) != path:
            continue
        usage, _, text = print_of(*words, "--help").partition("\n\n")
        assert usage.startswith(f"Usage: perdure {' '.join(words)}")
        first_line = " ".join(text.partition("\n\n")[0].split())
        assert f"{words[-1]} {first_line}" in listed


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_the_work_of_each_command_takes_its_options(words: list[str]) -> None:
    command: Any = get_command(make_app())
    for word in words:
        command = command.commands[word]
    if hasattr(command, "commands"):
        return
    variables = getclosurevars(command.callback.__wrapped__).nonlocals
    work = resolve_name(f"perdure.cli.{variables['work']}")
    (expected, _) = get_annotations(work, eval_str=True).values()
    assert issubclass(variables["cls"], expected)


@pytest.mark.long
@pytest.mark.parametrize("words", [["ls"], ["ls", "-ojson"], ["show", "@"], ["show", "--last"]])
def test_a_reading_command_imports_neither_temporal_nor_what_it_does_not_show(
    words: list[str], batch_folder: Path
) -> None:
    store = (batch_folder / "store").as_uri()
    env = {**clean_environment(), "PERDURE_STORE": store, "PERDURE_DATA": str(batch_folder)}
    code = PRINT_IMPORTS_OF_RUN
    run = [sys.executable, "-c", code, json.dumps(words)]
    done = subprocess.run(run, capture_output=True, text=True, check=True, env=env)
    modules = set(json.loads(done.stderr.splitlines()[-1]))
    heavy = {
        "boto3",
        "botocore",
        "litellm",
        "opentelemetry",
        "prompt_toolkit",
        "rich",
        "temporalio",
    }
    assert not {name.partition(".")[0] for name in modules} & heavy
    assert not {name for name in modules if name.startswith(tuple(OTHER_WORK))}
    assert words[0] == "show" or "perdure.events.event" not in modules, "the models of all events"


@pytest.mark.parametrize(
    ("arguments", "commands"),
    [
        (["ls"], {"ls"}),
        (["--debug", "show", "@", "ls"], {"show"}),
        (["setup", "temporal"], None),
        (["batch", "status"], {"batch"}),
        (["lss"], None),
        (["--help"], None),
    ],
)
def test_a_command_line_makes_the_parser_of_no_other_command(
    arguments: list[str], commands: set[str] | None
) -> None:
    everything = getattr(get_command(make_app()), "commands", {})
    made = getattr(get_command(select_commands(arguments)), "commands", {})
    assert {*made} == (commands or {*everything})
    assert len({*everything}) > 30


def test_the_options_list_the_condensers_and_the_export_formats_that_exist() -> None:
    kinds = [kind.model_fields["kind"].default for kind in get_args(get_args(SingleCondenser)[0])]
    assert [*CONDENSER_KINDS, "custom"] == [PRESET, *kinds]
    assert {format.name: format.description for format in FORMATS} == EXPORT_FORMATS


def test_the_version_is_that_of_the_package(print_of: Callable[..., str]) -> None:
    assert print_of("--version") == f"{version('perdure')}\n"


@pytest.mark.parametrize(
    ("words", "suggestion"),
    [
        (["shwo"], "show"),
        (["batch", "compre"], "compare"),
        (["ls", "--limt", "3"], "--limit"),
        (["send", "--wiat", "@", "x"], "--wait"),
    ],
)
def test_a_mistyped_command_or_option_is_answered_by_the_one_that_was_meant(
    words: list[str], suggestion: str, print_of: Callable[..., str]
) -> None:
    assert f"Did you mean '{suggestion}'?" in print_of(*words, code=2)
