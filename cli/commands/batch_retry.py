"""`perdure batch retry`: what a batch has left, as the store knows it."""

from cli.batch_given import BatchOutput, Detach, Name
from cli.batch_starting import again
from cli.output import Format
from cli.performing import command_app, perform

app = command_app()


@app.command()
def retry(name: Name, detach: Detach = False, output: BatchOutput = Format.text) -> None:
    """Run again what failed, and what is missing.

    The batch is run as it was run last: its file is not needed, only what that imports, which is
    looked for in this folder too. The exit code is as that of `perdure batch run`.
    """
    perform(again(name, "failed", detach, output), output)
