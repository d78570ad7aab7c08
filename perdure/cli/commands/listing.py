"""`perdure ls`: list conversations, without Temporal."""

import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from operator import attrgetter
from typing import Any, get_args

from perdure.agent.loop.status import Status
from perdure.cli.catalogs.catalog import Catalog
from perdure.cli.declarations.conversations import Ls
from perdure.cli.declarations.operations import Reindex
from perdure.cli.environment import find_servers, open_catalog
from perdure.cli.moments import parse_since
from perdure.cli.options import Format
from perdure.cli.output import is_terminal, note, print_list, show_result
from perdure.cli.rendering.conversation_table import (
    STALLED,
    STATUS_WORDS,
    describe_status,
    show_line,
    show_table,
)
from perdure.client.store import open_configured_store
from perdure.errors import Invalid
from perdure.events.status import Phase
from perdure.storage.conversations import creation_time
from perdure.storage.summary import Summary
from perdure.wording import count

SORTS: dict[str, Callable[[Summary], Any]] = {
    "cost": lambda summary: summary.cost or 0.0,
    "events": attrgetter("events"),
    "status": attrgetter("status"),
}
"""The orders that need every summary; costs and events begin with the largest."""


@dataclass(frozen=True)
class Query:
    """The conversations to list, and their order."""

    status: str | None
    tags: frozenset[str]
    model: str
    words: tuple[str, ...]
    since: datetime | None
    agent: str | None = None
    app: str | None = None
    active: bool = False
    hidden: bool = False

    def matches(self, summary: Summary) -> bool:
        text = f"{summary.title or ''} {summary.first_message or ''}".lower()
        return (
            self.status in (None, summary.status, summary.phase, describe_status(summary))
            and self.tags <= set(summary.tags)
            and self.agent in (None, summary.agent)
            and self.app in (None, summary.app)
            and not (self.active and summary.status == "closed")
            and (self.hidden or not summary.is_hidden)
            and self.model in (summary.model or "").lower()
            and all(word in text for word in self.words)
            and self._is_recent(summary)
        )

    def may_match(self, conversation_id: str) -> bool:
        """Tell by the id alone whether the conversation can match."""
        begun = creation_time(conversation_id)
        return self.since is None or begun is None or begun >= self.since

    def _is_recent(self, summary: Summary) -> bool:
        begun = summary.begun or summary.last_event
        return self.since is None or begun is None or datetime.fromisoformat(begun) >= self.since


async def ls(options: Ls) -> None:
    query = _parse_query(options, datetime.now(UTC))
    catalog = await open_catalog(options.shared)
    summaries = await _collect(catalog, query, options)
    _show(summaries, catalog.ids, options.output)
    if not summaries and options.output is Format.text:
        note(_describe_none(catalog, options))


async def reindex(options: Reindex) -> None:
    from perdure.storage.reindex import reindex as make_index  # slow: the models of a state

    settings = (await find_servers()).settings
    user = options.user or settings.user
    number = await make_index(open_configured_store(settings), user)
    fields = {"user": user, "conversations": number}
    show_result(fields, options.output, remark=f"Indexed {count(number, 'conversation')}.")


def _describe_none(catalog: Catalog, options: Ls) -> str:
    if catalog.ids:
        return "No conversation matches."
    if options.shared:
        return "No other user shares a conversation with you."
    return 'There are no conversations yet: start one with `perdure run "TASK"`.'


def _parse_query(options: Ls, now: datetime) -> Query:
    """Raises Invalid for a status or a time that cannot be."""
    return Query(
        status=_parse_status(options.status),
        tags=frozenset(options.tags or ()),
        model=(options.model or "").lower(),
        words=tuple((options.text or "").lower().split()),
        since=parse_since(options.since, now) if options.since is not None else None,
        agent=options.agent,
        app=options.app,
        active=options.active,
        hidden=options.hidden,
    )


def _parse_status(text: str | None) -> str | None:
    if text is None:
        return None
    words = {word: name for name, word in STATUS_WORDS.items()}
    name = words.get(text, text).replace("-", "_")
    known = [*dict.fromkeys([*get_args(Status), *get_args(Phase), STALLED])]
    if name not in known:
        raise Invalid(f"There is no status {text!r}.", f"It is one of {', '.join(known)}.")
    return name


async def _collect(catalog: Catalog, query: Query, options: Ls) -> list[Summary]:
    """Summarize as many as are shown, and only those that the filters or the order need."""
    by, summaries = SORTS.get(options.sort), list[Summary]()
    walk = catalog.walk(
        query.may_match,
        options.limit,
        order=options.sort if options.sort in ("oldest", "activity") else "newest",
        with_message=bool(query.words),
    )
    async for summary in walk:
        if query.matches(summary):
            summaries.append(summary)
            if by is None and len(summaries) == options.limit:
                break
    if by is not None:
        summaries.sort(key=by, reverse=options.sort != "status")
    return summaries[: options.limit]


def _show(summaries: list[Summary], ids: list[str], output: Format) -> None:
    if output is Format.text and is_terminal(sys.stdout) and summaries:
        show_table(summaries, ids, datetime.now(UTC))
        return
    with print_list(_fields, show_line, output) as print_summary:
        for summary in summaries:
            print_summary(summary)


def _fields(summary: Summary) -> dict[str, Any]:
    fields = asdict(summary)
    del fields["first_message"], fields["usage"]
    return fields
