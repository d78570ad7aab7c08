"""`perdure batch rescore`: the scorers once more."""

from typing import Annotated

import typer

from cli.batch_given import BatchOutput, Detach, Given, Name, given
from cli.batch_starting import again, run
from cli.output import Format
from cli.performing import command_app, perform
from client.errors import Invalid

app = command_app()


@app.command()
def rescore(
    name: Name,
    file: Annotated[
        str | None,
        typer.Argument(metavar="[FILE]", help="With other scorers or targets; else as it was run."),
    ] = None,
    detach: Detach = False,
    output: BatchOutput = Format.text,
) -> None:
    """Score again what there is, from the logs, without running an agent.

    A scorer that looks into the workspace needs the files that its agent left, where they were
    kept. The exit code is as that of `perdure batch run`.
    """
    perform(
        again(name, "rescore", detach, output)
        if file is None
        else _rescore(name, file, detach, output),
        output,
    )


async def _rescore(name: str, file: str, detach: bool, output: Format) -> int:
    asked = given(file, {})
    named = tuple(one for one in asked.batches if one.name == name)
    if not named:
        others = ", ".join(one.name for one in asked.batches)
        raise Invalid(
            f"{file} is no batch {name}: it is {others}.", f"Write name = {name!r} there."
        )
    return await run(Given(named, asked.options), "rescore", detach, output)
