"""What is known of the commands before any of them is imported."""

import importlib
import json
import subprocess
import sys

import pytest

from cli.main import COMMANDS
from tests.cli.command import COMMAND

SLOW = {"boto3", "litellm", "pydantic", "rich", "temporalio"}

LOOK = """
import json, sys
from cli.main import outcome
code = outcome(["--help"])
print(json.dumps(sorted(sys.modules)), file=sys.stderr)
sys.exit(code)
"""


def test_the_help_imports_nothing_slow_and_no_command() -> None:
    done = subprocess.run([sys.executable, "-c", LOOK], capture_output=True, text=True, check=True)
    imported = {name.partition(".")[0] for name in json.loads(done.stderr)}
    assert not imported & SLOW
    assert "cli.commands" not in json.loads(done.stderr)


def test_the_help_lists_every_command() -> None:
    done = subprocess.run([*COMMAND, "--help"], capture_output=True, text=True, check=True)
    words = " ".join(done.stdout.split())
    assert all(f"{name} {said}" in words for name, said in COMMANDS.items())
    assert "5 timed out (the work goes on)" in words


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_says_of_itself_what_the_list_says(name: str) -> None:
    app = importlib.import_module(f"cli.commands.{name}").app
    [told] = (
        app.registered_commands if app.registered_callback is None else [app.registered_callback]
    )
    assert told.callback.__doc__.partition("\n")[0] == COMMANDS[name]
