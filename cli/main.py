"""The `perdure` command: which commands there are, and how it ends when one cannot be run.

Only this module is imported to show the help; the module of a command is imported when it is used.
"""

import itertools
import json
import sys
import traceback
from typing import Annotated, NoReturn

import typer
from typer.main import get_command

from cli.ending import end
from cli.lazy import Lazy

COMMANDS = {
    "dev": "Start a Temporal dev server, an S3 store and a worker; ^C ends them.",
    "run": "Run one conversation to the end of its first turn, and show it as it happens.",
    "chat": "Talk to an agent at the terminal.",
    "send": "Send a message to a conversation.",
    "watch": "Show the events of a conversation as they are written, until ^C.",
    "show": "Print the log of a conversation.",
    "ls": "List conversations, the newest first.",
    "status": "Say where a conversation stands.",
    "pause": "Pause a conversation between two steps.",
    "resume": "Go on after a pause, an interrupt, an error or a limit.",
    "interrupt": "Stop the model or the tool that is at work; the conversation waits for its user.",
    "approve": "Let actions happen that wait for a person.",
    "reject": "Do not let actions happen that wait for a person; the agent goes on without them.",
    "configure": "Change the model, the limits or the confirmation policy of a conversation.",
    "condense": "Make what the model is shown smaller, by the conversation's condenser.",
    "note": "Note a title, tags or state for a conversation; the agent is not told.",
    "ask": "Ask an agent something beside its task; nothing of it is kept.",
    "fork": "Go on from an earlier point of a conversation, in a new one.",
    "reopen": "Go on with conversations from their logs, after Temporal's database was lost.",
    "replay": "Do again what was recorded in a conversation, then go on live.",
    "close": "End a conversation for good; its log stays.",
    "export": "Export conversations: messages, ATIF, OpenHands, Inspect, HTML and more.",
    "batch": "Run batches of samples, and see what comes of them.",
    "verify": "Check that conversations are as they were written, and name each event that is not.",
    "purge": "Delete a conversation for good: its log, and its histories in Temporal.",
    "setup": "Tell Temporal once what perdure needs of it.",
    "doctor": "Check Temporal, the store, the model's key and the disk, and say how to mend them.",
    "worker": "Run a worker in this process.",
    "deploy": "Let conversations begin and go on under a version of the workers' code.",
    "model": "Serve a scripted model over HTTP.",
    "codec": "Decrypt payloads for the Temporal UI.",
}

USAGE, INTERNAL = 2, 1


class Commands(Lazy):
    modules = "cli.commands."
    told = COMMANDS


app = typer.Typer(
    cls=Commands,
    add_completion=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Exit codes: 0 ok, 1 the agent failed, 2 usage or configuration, 3 not found, 4 refused "
    "or conflict, or the turn waits for you, 5 timed out (the work goes on), 6 Temporal or the "
    "store unreachable, 130 interrupted.",
)


@app.callback(invoke_without_command=True)
def perdure(
    context: typer.Context,
    debug: Annotated[bool, typer.Option("--debug", help="Show where an error came from.")] = False,
) -> None:
    """Agent conversations that cannot be lost."""
    context.obj = debug
    if context.invoked_subcommand is None:
        typer.echo(context.get_help(), err=True)
        raise typer.Exit(USAGE)


def main() -> NoReturn:
    for stream in (sys.stdout, sys.stderr):  # models write characters that no terminal has
        stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    end(outcome(sys.argv[1:]))


def outcome(arguments: list[str]) -> int:
    """Carry out the command line; the exit code."""
    try:
        return get_command(app).main(arguments, prog_name="perdure", standalone_mode=False) or 0
    except typer.TyperException as error:
        return misused(error, arguments)
    except SystemExit as error:  # nobody reads what was to be printed
        return error.code if isinstance(error.code, int) else INTERNAL
    except Exception as error:
        return unforeseen(error, arguments)


def misused(error: typer.TyperException, arguments: list[str]) -> int:
    """Say what is wrong with the command line itself."""
    path = getattr(getattr(error, "ctx", None), "command_path", "perdure")
    tell("usage", error.format_message(), f"See `{path} --help`.", arguments)
    return USAGE


def unforeseen(error: Exception, arguments: list[str]) -> int:
    """Ask to report what nobody has thought of."""
    if "--debug" in arguments:
        traceback.print_exception(error)
    what = f"perdure failed in a way that nobody foresaw: {type(error).__name__}: {error}"
    hint = "Please report it, with what `perdure --debug ...` prints."
    tell("internal", what, hint, arguments)
    return INTERNAL


def tell(code: str, message: str, hint: str, arguments: list[str]) -> None:
    if wants_json(arguments):
        typer.echo(json.dumps({"error": {"code": code, "message": message, "hint": hint}}))
    else:
        typer.echo(f"perdure: {message} {hint}", err=True)


def wants_json(arguments: list[str]) -> bool:
    """Whether the output was asked for in JSON, as far as a command line that is wrong can tell."""
    pairs = itertools.pairwise(arguments)
    apart = any(one in ("-o", "--output") and two in ("json", "jsonl") for one, two in pairs)
    joined = {"-ojson", "-ojsonl", "--output=json", "--output=jsonl"}
    return apart or bool(joined & set(arguments))


if __name__ == "__main__":
    main()
