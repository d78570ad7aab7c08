"""`perdure batch pause`."""

from cli.batch_given import BatchOutput, Name
from cli.batch_steering import steer
from cli.output import Format
from cli.performing import command_app, perform
from client.batch_handle import BatchHandle

app = command_app()


@app.command()
def pause(name: Name, output: BatchOutput = Format.text) -> None:
    """Pause a batch, and the conversations that it runs.

    Each of them pauses between two steps.
    """
    said = f"A pause is asked for. `perdure batch resume {name}` goes on."
    perform(steer(name, BatchHandle.pause, said, output), output)
