"""`perdure verify`: whether conversations are what was written."""

import contextlib
import sys
from collections.abc import AsyncGenerator, Iterator
from dataclasses import asdict, dataclass
from typing import Annotated, Any

import typer
from rich.text import Text

from cli.failures import FAILED, OK
from cli.output import Format, Output, plain, show, show_json, stderr
from cli.performing import command_app, perform
from cli.reading import must_exist
from cli.stack import log_of, place
from client.client import Client
from client.errors import Invalid, Unreachable
from client.store import store_of
from storage.conversations import conversations
from storage.inspection import Finding
from storage.log import EventLog
from storage.verify import Progress
from storage.verify import verify as findings_of

app = command_app()

EVERY = sys.maxsize
"""More than there are conversations."""


@dataclass
class Verdict:
    """What came of one conversation; `events` is how many it has or had."""

    id: str
    whole: bool = True
    events: int = 0

    def take(self, finding: Finding) -> None:
        self.whole = self.whole and finding.kind == "note"


@app.command()
def verify(
    ids: Annotated[
        list[str] | None, typer.Argument(metavar="[ID]...", help="The conversations' ids.")
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="Check every conversation.")] = False,
    output: Output = Format.text,
) -> None:
    """Check that conversations are as they were written, and name each event that is not.

    Every object is read from the store, and nothing is changed. Where Temporal answers, the
    workflow is asked how many events there must be. The exit code is 1 where anything is damaged.
    """
    perform(_verify(ids or [], every, output), output)


async def _verify(ids: list[str], every: bool, output: Format) -> int:
    if every == bool(ids):
        raise Invalid("Name conversations, or give --all.", "`perdure ls` lists them.")
    verdicts: list[Verdict] = []
    told: list[dict[str, Any]] = []
    async with contextlib.aclosing(_logs(ids, every)) as logs:
        async for log in logs:
            verdict, fields = await _one(log, output)
            verdicts.append(verdict)
            told += [fields] if output is Format.json else []
    if output is Format.json:
        show_json(told, output)
    return OK if all(verdict.whole for verdict in verdicts) else FAILED


async def _logs(ids: list[str], every: bool) -> AsyncGenerator[EventLog, None]:
    if every:
        settings = (await place()).settings
        store = store_of(settings)
        for name in await conversations(store, settings.user, EVERY):
            yield EventLog(store, settings.user, name)
    for name in ids:
        log = await log_of(name)
        await must_exist(log)
        yield log


async def _one(log: EventLog, output: Format) -> tuple[Verdict, dict[str, Any]]:
    verdict = Verdict(log.conversation_id)
    found: list[dict[str, Any]] = []
    with _progress(verdict, output) as progress:
        async for finding in findings_of(log, await _known(log.conversation_id), progress):
            verdict.take(finding)
            if output is Format.text:
                _show(log.conversation_id, finding)
            else:
                found.append(asdict(finding))
    fields = {**asdict(verdict), "findings": found}
    if output is Format.jsonl:
        show_json(fields, output)
    elif output is Format.text:
        _conclude(verdict)
    return verdict, fields


def _conclude(verdict: Verdict) -> None:
    said = ("whole", "green") if verdict.whole else ("DAMAGED", "bold red")
    show(Text.assemble(f"{verdict.id}  {verdict.events:>6} events  ", said))


def _show(conversation_id: str, finding: Finding) -> None:
    where = f"seq {finding.seq}: " if finding.seq is not None else ""
    style = "dim" if finding.kind == "note" else "red"
    show(Text(plain(f"{conversation_id}  {where}{finding.what} ({finding.key})"), style=style))


@contextlib.contextmanager
def _progress(verdict: Verdict, output: Format) -> Iterator[Progress]:
    """Keeps count, and tells a person at a terminal."""
    watched = output is Format.text and stderr.is_terminal

    def tell(done: int, end: int) -> None:
        verdict.events = end
        if watched:
            stderr.print(f"{done:,} of {end:,}", end="\r", style="dim")

    yield tell


async def _known(conversation_id: str) -> int:
    """How many events there must be, where its workflow says so."""
    with contextlib.suppress(Unreachable, Invalid):
        client = await Client.connect((await place()).settings)
        found = await client.conversation(conversation_id).remote.asked()
        return found.next_seq if found else 0
    return 0
