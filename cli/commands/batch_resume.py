"""`perdure batch resume`."""

from cli.batch_given import BatchOutput, Name
from cli.batch_steering import steer
from cli.output import Format
from cli.performing import command_app, perform
from client.batch_handle import BatchHandle

app = command_app()


@app.command()
def resume(name: Name, output: BatchOutput = Format.text) -> None:
    """Go on after a pause.

    A batch that paused at a limit goes on by `perdure batch retune`; one that has ended, by
    `perdure batch retry`.
    """
    perform(steer(name, BatchHandle.resume, "It goes on.", output), output)
