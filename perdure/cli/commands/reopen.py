"""`perdure reopen`: give conversations that Temporal has lost a workflow again."""

from collections import Counter
from collections.abc import AsyncIterator, Sequence
from dataclasses import asdict
from typing import Any

from perdure.cli.environment import connect_client, find_environment
from perdure.cli.options import Format
from perdure.cli.output import note, show, show_json
from perdure.client.client import Client
from perdure.errors import Invalid
from perdure.operations.error_reports import EXIT_FAILED, EXIT_OK
from perdure.operations.reopen import ReopenOutcome, ReopenResult, reopen_all
from perdure.operations.reopen import reopen as reopen_one

OUTCOME_NAMES: dict[ReopenOutcome, str] = {
    "reopened": "reopened",
    "running": "running already",
    "at_rest": "at rest",
    "closed": "closed",
    "delegated": "gone on with by another",
    "damaged": "damaged",
}
"""The display text of each outcome."""

PROGRESS_INTERVAL = 100
"""Conversations between two notes on the progress."""


async def execute(ids: Sequence[str], every: bool, user: str | None, output: Format) -> int:
    if bool(ids) is every:
        raise Invalid("Name conversations, or give --all.", "`perdure ls` lists them.")
    client = await connect_client((await find_environment(user=user)).settings)
    counts: Counter[str] = Counter()
    listed: list[dict[str, Any]] = []
    async for reopened in reopen_all(client) if every else _reopen_each(client, ids):
        counts[reopened.outcome] += 1
        if output is Format.json:
            listed.append(asdict(reopened))
        else:
            _print_outcome(reopened, output)
        if counts.total() % PROGRESS_INTERVAL == 0:
            note(f"{counts.total():,} so far: {_format_counts(counts)}")
    if output is Format.json:
        show_json(listed, output)
    note(_format_counts(counts) or "There are no conversations.")
    return EXIT_FAILED if counts["damaged"] else EXIT_OK


async def _reopen_each(client: Client, ids: Sequence[str]) -> AsyncIterator[ReopenResult]:
    for conversation_id in dict.fromkeys(ids):
        yield await reopen_one(client, conversation_id)


def _print_outcome(reopened: ReopenResult, output: Format) -> None:
    if output is Format.jsonl:
        show_json(asdict(reopened), output)
        return
    outcome = OUTCOME_NAMES[reopened.outcome]
    about = ": ".join(filter(None, (reopened.status, reopened.reason)))
    show(f"{reopened.conversation_id}  {outcome:<{len('running already')}}  {about}")


def _format_counts(counts: Counter[str]) -> str:
    parts = (f"{counts[name]:,} {label}" for name, label in OUTCOME_NAMES.items() if counts[name])
    return ", ".join(parts)
