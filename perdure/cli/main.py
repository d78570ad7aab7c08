"""The `perdure` command: its groups of commands, and its errors and exit codes."""

import json
import os
import re
import sys
import traceback
from collections.abc import Iterator
from difflib import get_close_matches
from importlib import import_module
from typing import Annotated, NoReturn

import typer
from typer.main import get_command

from perdure.cli.options import USAGE_ERROR
from perdure.cli.runner import new_group
from perdure.operations.process_exit import exit_process

INTERNAL_ERROR = 1

EPILOG = (
    "Exit codes: 0 ok, 1 the agent failed, 2 usage or configuration, 3 not found, 4 refused "
    "or conflict, or the turn waits for you, 5 timed out (the work goes on), 6 Temporal, the store "
    "or the gateway unreachable, 130 interrupted."
)

COMMANDS = (
    *("conversations:app", "discussions:top", "control:app", "waiting:app"),
    *("operations:app", "gateway:app"),
)
"""The declarations of the commands, in the order of the help, as `module:variable`."""

GROUPS = {
    "agent": "agents:app",
    "batch": "batches:app",
    "schedule": "schedules:app",
    "secret": "secrets:app",
    "discussion": "discussions:app",
    "memory": "memories:app",
    "webhook": "webhooks:app",
    "address": "addresses:app",
}
"""The declarations of the groups of commands, by their names."""


def perdure(
    context: typer.Context,
    gateway: Annotated[
        str | None,
        typer.Option(
            "--gateway",
            metavar="URL",
            help="Use the servers behind this gateway, with the key of PERDURE_GATEWAY_KEY.",
        ),
    ] = None,
    debug: Annotated[bool, typer.Option("--debug", help="Show where an error came from.")] = False,
    show_version: Annotated[
        bool, typer.Option("--version", help="Show the version and exit.")
    ] = False,
) -> None:
    """Agent conversations that cannot be lost."""
    context.obj = debug
    if gateway is not None:  # stronger than the settings of the environment and of files
        os.environ["PERDURE_GATEWAY"] = gateway
    if show_version:
        from importlib.metadata import version  # slow

        typer.echo(version("perdure"))
        raise typer.Exit
    if context.invoked_subcommand is None:
        typer.echo(context.get_help(), err=True)
        raise typer.Exit(USAGE_ERROR)


def main() -> NoReturn:
    for stream in (sys.stdout, sys.stderr):  # models write characters that no terminal has
        stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    exit_process(run_command_line(sys.argv[1:]))


def run_command_line(arguments: list[str]) -> int:
    """Run the command line, and return the exit code."""
    try:
        command = get_command(select_commands(arguments))
        return command.main(arguments, prog_name="perdure", standalone_mode=False) or 0
    except typer.TyperException as error:
        return report_usage_error(error, arguments)
    except SystemExit as error:  # stdout or stderr is a closed pipe
        return error.code if isinstance(error.code, int) else INTERNAL_ERROR
    except Exception as error:
        return report_internal_error(error, arguments)


def select_commands(arguments: list[str]) -> typer.Typer:
    """Return the app with nothing but the called command or group; all of it for another word.

    Typer is slow to make the parser of a command, and makes those of all that an app has; their
    declarations take time as well.
    """
    called = next(_list_words(arguments), None)
    app = _make_empty_app()
    if called in GROUPS:
        app.add_typer(_load(GROUPS[called]), name=called)
        return app
    for place in COMMANDS:
        named = [each for each in _load(place).registered_commands if each.name == called]
        if named:
            app.registered_commands = named
            return app
    return make_app()


def make_app() -> typer.Typer:
    """Make the app of all commands."""
    app = _make_empty_app()
    for place in COMMANDS:
        app.add_typer(_load(place))
    for name, place in GROUPS.items():
        app.add_typer(_load(place), name=name)
    return app


def _make_empty_app() -> typer.Typer:
    app = new_group(completion=True, epilog=EPILOG)
    app.callback(invoke_without_command=True)(perdure)
    return app


def _load(place: str) -> typer.Typer:
    module, _, variable = place.partition(":")
    group: typer.Typer = getattr(import_module(f"perdure.cli.declarations.{module}"), variable)
    return group


def _list_words(arguments: list[str]) -> Iterator[str]:
    """Yield the arguments that are neither an option nor the address of --gateway."""
    before = ""
    for word in arguments:
        if not word.startswith("-") and before != "--gateway":
            yield word
        before = word


def report_usage_error(error: typer.TyperException, arguments: list[str]) -> int:
    """Report a mistake in the command line itself."""
    path = getattr(getattr(error, "ctx", None), "command_path", "perdure")
    print_error("usage", _describe_usage_error(error), f"See `{path} --help`.", arguments)
    return USAGE_ERROR


def _describe_usage_error(error: typer.TyperException) -> str:
    """Return the message; a mistyped option is answered by the one that it resembles most."""
    context = getattr(error, "ctx", None)
    if context is None or not hasattr(error, "possibilities"):  # of no other kind of mistake
        return error.format_message()
    name = getattr(error, "option_name", "")
    known = [option for each in context.command.params for option in each.opts if option[:1] == "-"]
    likely = get_close_matches(name, [*known, "--help"], n=1)
    return f"No such option: {name}." + (f" Did you mean {likely[0]!r}?" if likely else "")


def report_internal_error(error: Exception, arguments: list[str]) -> int:
    """Report a bug of perdure."""
    if "--debug" in arguments:
        traceback.print_exception(error)
    message = f"This is a bug of perdure: {type(error).__name__}: {error}"
    hint = "Please report it, with what `perdure --debug ...` prints; the log is whole."
    print_error("internal", message, hint, arguments)
    return INTERNAL_ERROR


def print_error(code: str, message: str, hint: str, arguments: list[str]) -> None:
    if wants_json(arguments):
        typer.echo(json.dumps({"error": {"code": code, "message": message, "hint": hint}}))
    else:
        typer.echo(f"perdure: {message} {hint}", err=True)


def wants_json(arguments: list[str]) -> bool:
    """Guess from a command line that may not parse whether JSON output is wanted."""
    line = "\0".join(["", *arguments, ""])
    return re.search(r"\0(-o\0?|--output[=\0])jsonl?\0", line) is not None


if __name__ == "__main__":
    main()
