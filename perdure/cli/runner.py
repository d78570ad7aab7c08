"""Runner of commands: their options, their asyncio loop, their errors and exit codes.

asyncio and the classes of errors are slow to import, and no help needs them: functions import them.
"""

from collections.abc import Callable
from dataclasses import MISSING, fields
from importlib import import_module
from inspect import Parameter, Signature
from typing import Annotated, Any, TypeVar

import typer
from typer.core import TyperCommand, TyperGroup

from perdure.cli.imports import avoid_plugin_search, quick_imports
from perdure.cli.options import LAST, NEWEST, USAGE_ERROR, ConversationOptions, Options

OptionsT = TypeVar("OptionsT", bound=Options)


CONTEXT = Parameter("context", Parameter.POSITIONAL_OR_KEYWORD, annotation=typer.Context)


class CommandGroup(TyperGroup):
    """A group that lists its commands with the whole first line of their help."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002
        helps = {name: command.help or "" for name, command in self.commands.items()}
        with formatter.section("Commands"):
            formatter.write_dl([(name, help.partition("\n")[0]) for name, help in helps.items()])


class Command(TyperCommand):
    """A command that lists its options under their headings, those without one first."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        sections: dict[str, list[Any]] = {"Arguments": [], "Options": []}
        for parameter in self.get_params(ctx):
            is_argument = parameter.param_type_name == "argument"
            heading = getattr(parameter, "rich_help_panel", None)
            record = parameter.get_help_record(ctx)
            if record is not None:
                title = "Arguments" if is_argument else heading or "Options"
                sections.setdefault(title, []).append(record)
        for title, records in sections.items():
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)


class IdCommand(Command):
    """A command about a conversation, whose id may be left out for `--last`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        options = args[: args.index("--")] if "--" in args else args
        if LAST in options:
            args = [NEWEST, *args[: args.index(LAST)], *args[args.index(LAST) + 1 :]]
        return super().parse_args(ctx, args)


def new_group(epilog: str | None = None, completion: bool = False) -> typer.Typer:
    """Make the Typer app of a group of commands; `completion` installs that of a shell."""
    return typer.Typer(
        cls=CommandGroup,
        add_completion=completion,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"]},
        epilog=epilog,
    )


def new_named_group(help: str) -> typer.Typer:
    """Make the Typer app of a group with a name, which shows its help where no command is given."""
    group = new_group()

    def show_help(context: typer.Context) -> None:
        if context.invoked_subcommand is None:
            typer.echo(context.get_help(), err=True)
            raise typer.Exit(USAGE_ERROR)

    group.callback(invoke_without_command=True, help=help)(show_help)
    return group


def command(
    group: typer.Typer, work: str, name: str | None = None
) -> Callable[[type[OptionsT]], type[OptionsT]]:
    """Make a class of options a command: its docstring is the help.

    `work` is the function that runs with the options, as `module:function` within `perdure.cli`.
    It is imported when the command is used. The command is called as the class by default.
    """

    def register(cls: type[OptionsT]) -> type[OptionsT]:

        def run(context: typer.Context, **values: Any) -> None:
            run_command(work, cls(**values), context.find_root().params.get("gateway"))

        run.__signature__ = Signature([CONTEXT, *_parameters(cls)])  # type: ignore[attr-defined]
        kind = IdCommand if issubclass(cls, ConversationOptions) else Command
        group.command(name or cls.__name__.lower(), cls=kind, help=cls.__doc__)(run)
        return cls

    return register


def _parameters(options: type[Options]) -> list[Parameter]:
    """Convert the fields to parameters for Typer; `output` comes last in every help."""
    return [
        Parameter(
            field.name,
            Parameter.KEYWORD_ONLY,
            default=Parameter.empty if field.default is MISSING else field.default,
            annotation=Annotated[field.type, field.metadata.get("typer")],
        )
        for field in sorted(fields(options), key=lambda field: field.name == "output")
    ]


def run_command(work: str, options: Options, gateway: str | None = None) -> None:
    """Run `work` and exit with its code; report the errors of EXPECTED_ERRORS in a sentence.

    `gateway` is the address of --gateway.
    """
    module, _, name = work.partition(":")
    if not options.runs_user_code:
        avoid_plugin_search()
    with quick_imports():
        import asyncio
        import os

        from perdure.cli.environment import close_gateways
        from perdure.cli.gateway_use import check_gateway_use
        from perdure.cli.ids import resolve_ids
        from perdure.cli.output import report_failure
        from perdure.operations.error_reports import EXPECTED_ERRORS, report_error
        from perdure.temporal.sender import sent_from

        function = getattr(import_module(f"perdure.cli.{module}"), name)

    async def execute() -> int | None:
        check_gateway_use(options.through_gateway, gateway)
        try:
            with sent_from(os.environ.get("TRACEPARENT")):  # of the program that runs us
                await resolve_ids(options)
                result: int | None = await function(options)
        finally:
            await close_gateways()
        return result

    try:
        code = asyncio.run(execute())
    except EXPECTED_ERRORS as error:
        failure = report_error(error)
        report_failure(failure, options.error_format)
        code = failure.exit_code
    raise typer.Exit(code or 0)
