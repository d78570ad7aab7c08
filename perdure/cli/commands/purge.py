"""`perdure purge`: delete conversations for good."""

import typer

from perdure.cli.environment import connect_client
from perdure.cli.options import Format
from perdure.cli.output import note, show_json
from perdure.errors import Conflict
from perdure.operations.purge import PurgeResult, list_purge_targets
from perdure.operations.purge import purge as delete


async def execute(conversation_id: str, yes: bool, with_forks: bool, output: Format) -> None:
    client = await connect_client()
    names = await list_purge_targets(client, conversation_id, with_forks)
    if not yes:
        _confirm(names)
    purged = await delete(client, names)
    if output is Format.text:
        _print_purged(purged)
    else:
        fields = {
            "objects": purged.objects,
            "histories": purged.histories,
            "kept": purged.undeleted_reason,
        }
        show_json({"purged": list(purged.objects), **fields}, output)


def _confirm(names: list[str]) -> None:
    """Raises Conflict unless a person says yes."""
    for name in names:
        note(name, "bold")
    try:
        sure = typer.confirm("Delete this for good?", err=True)
    except typer.Abort:  # stdin has no answer
        sure = False
    if not sure:
        raise Conflict("Nothing was deleted.", "Say yes, or give --yes.")


def _print_purged(purged: PurgeResult) -> None:
    for name, count in purged.objects.items():
        note(f"{name}: {count} objects deleted")
    note(f"{purged.histories} histories in Temporal deleted")
    if purged.undeleted_reason is not None:
        note(
            f"Temporal keeps others until its retention time is over: {purged.undeleted_reason}",
            "yellow",
        )
