"""The sandbox that the settings ask for."""

from client.errors import Invalid
from sandbox.choice import Choice, choose
from sandbox.sandbox import Unusable
from settings.settings import Settings


def sandbox_of(settings: Settings) -> Choice:
    """Tried out where the workspaces are. Raises Invalid, OSError."""
    reads = [path.expanduser().absolute() for path in settings.sandbox_reads]
    if lost := [path for path in reads if not path.exists()]:
        raise Invalid(f"There is no {lost[0]}.", "Mend PERDURE_SANDBOX_READS.")
    try:
        return choose(settings.sandbox, settings.data.absolute() / "workspaces", reads)
    except Unusable as error:
        raise Invalid(str(error)) from error
