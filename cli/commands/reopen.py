"""`perdure reopen`: conversations brought back that Temporal does not know any more."""

from collections import Counter
from collections.abc import AsyncIterator, Sequence
from typing import Annotated, Any

import typer

from cli.failures import FAILED, OK
from cli.output import Format, Output, note, show, show_json
from cli.performing import command_app, perform
from cli.stack import place
from client.client import Client
from client.errors import Invalid
from client.reopen import Outcome, Reopened, reopen_all
from client.reopen import reopen as reopen_one

OUTCOMES: dict[Outcome, str] = {
    "reopened": "reopened",
    "running": "running already",
    "at_rest": "at rest",
    "closed": "closed",
    "delegated": "gone on with by another",
    "damaged": "damaged",
}
"""What a person is told of each."""

NOTED = 100
"""After so many conversations a person is told how far it is."""

app = command_app()


@app.command()
def reopen(
    conversation_ids: Annotated[
        list[str] | None, typer.Argument(metavar="[ID]...", help="The conversations' ids.")
    ] = None,
    every: Annotated[
        bool, typer.Option("--all", help="Look at every conversation of the user.")
    ] = False,
    user: Annotated[
        str | None, typer.Option(metavar="USER", help="Whose conversations, if not yours.")
    ] = None,
    output: Output = Format.text,
) -> None:
    """Go on with conversations from their logs, after Temporal's database was lost.

    Those in the middle of a turn get a workflow again, unless one runs. Those at rest need none:
    the next message opens them. It exits with 1 where a log is damaged.
    """
    perform(_reopen(conversation_ids or [], every, user, output), output)


async def _reopen(ids: Sequence[str], every: bool, user: str | None, output: Format) -> int:
    if bool(ids) is every:
        raise Invalid("Name conversations, or give --all.", "`perdure ls` lists them.")
    client = await Client.connect((await place(user=user)).settings)
    counts: Counter[str] = Counter()
    listed: list[dict[str, Any]] = []
    async for one in reopen_all(client) if every else _each(client, ids):
        counts[one.outcome] += 1
        if output is Format.json:
            listed.append(_fields(one))
        else:
            _tell(one, output)
        if counts.total() % NOTED == 0:
            note(f"{counts.total():,} so far: {_counted(counts)}")
    if output is Format.json:
        show_json(listed, output)
    note(_counted(counts) or "There are no conversations.")
    return FAILED if counts["damaged"] else OK


async def _each(client: Client, ids: Sequence[str]) -> AsyncIterator[Reopened]:
    for one in dict.fromkeys(ids):
        yield await reopen_one(client, one)


def _tell(one: Reopened, output: Format) -> None:
    if output is Format.jsonl:
        show_json(_fields(one), output)
        return
    about = ": ".join(filter(None, (one.status, one.reason)))
    show(f"{one.conversation_id}  {OUTCOMES[one.outcome]:<{len('running already')}}  {about}")


def _fields(one: Reopened) -> dict[str, Any]:
    return {
        "conversation_id": one.conversation_id,
        "outcome": one.outcome,
        "status": one.status,
        "reason": one.reason,
    }


def _counted(counts: Counter[str]) -> str:
    told = (f"{counts[name]:,} {said}" for name, said in OUTCOMES.items() if counts[name])
    return ", ".join(told)
