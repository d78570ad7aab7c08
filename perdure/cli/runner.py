"""Runner of commands: their asyncio loop, their errors and exit codes.

asyncio and the classes of errors are slow to import, and no help needs them: functions import them.
"""

from collections.abc import Coroutine
from typing import Any

import typer
from typer.core import TyperGroup

from perdure.cli.options import Format


class CommandGroup(TyperGroup):
    """A group that lists its commands with the whole first line of their help."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002
        commands = self.commands.items()
        with formatter.section("Commands"):
            formatter.write_dl(
                [(name, (command.help or "").partition("\n")[0]) for name, command in commands]
            )


def new_group(epilog: str | None = None) -> typer.Typer:
    """Make the Typer app of a group of commands."""
    return typer.Typer(
        cls=CommandGroup,
        add_completion=False,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"]},
        epilog=epilog,
    )


def run_command(work: Coroutine[Any, Any, int | None], output: Format) -> None:
    """Run `work` and exit with its code; report the errors of EXPECTED_ERRORS in a sentence."""
    import asyncio

    from perdure.cli.output import report_failure
    from perdure.operations.error_reports import EXPECTED_ERRORS, report_error

    try:
        code = asyncio.run(work)
    except EXPECTED_ERRORS as error:
        failure = report_error(error)
        report_failure(failure, output)
        code = failure.exit_code
    raise typer.Exit(code or 0)
