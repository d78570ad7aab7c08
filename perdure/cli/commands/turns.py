"""Commands that send a conversation a message or a question, and watch what it does."""

import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TypeAlias

from perdure.agent.loop.evolve import fold
from perdure.agent.loop.start import ConversationStatus
from perdure.agent.loop.state import State
from perdure.cli.arguments import load_images, read_text
from perdure.cli.commands.files import print_result_and_changes
from perdure.cli.declarations import conversations
from perdure.cli.environment import connect_client, open_conversation, open_log
from perdure.cli.follow import TurnView, follow, note_trouble
from perdure.cli.options import Format
from perdure.cli.output import note, show, show_json, show_result
from perdure.cli.rendering import log_pages
from perdure.cli.rendering.events import SlotPrinter, slot_fields
from perdure.cli.rendering.live_region import run_beside, show_live_steps
from perdure.cli.rendering.status_lines import (
    describe_status_event,
    status_fields,
    status_lines,
)
from perdure.client.ids import new_message_id, split_owner
from perdure.client.logged_status import read_logged_status
from perdure.client.running_step import RunningStep
from perdure.client.saved import wait_until_saved
from perdure.client.trouble import temporal_unreachable
from perdure.client.turn import is_turn_over
from perdure.errors import Invalid, NotFound, Unreachable
from perdure.events.entry import Entry
from perdure.events.event import dump_event
from perdure.events.projection import summarize
from perdure.events.usage import describe_cost
from perdure.operations.error_reports import EXIT_OK
from perdure.storage.errors import StoreUnavailable
from perdure.storage.log.readable import EntryOrError, ReadableLog
from perdure.storage.log.state import read_state
from perdure.wording import count

IsOver: TypeAlias = Callable[[State], Awaitable[bool]]


async def send(options: conversations.Send) -> int:
    name, output = options.conversation_id, options.output
    text, images = read_text(options.text), load_images(options.images or [])
    message_id = options.message_id if options.message_id is not None else new_message_id()
    conversation = open_conversation(await connect_client(), name)
    waits = options.wait or options.answer_only
    end = await conversation.log.end() if waits or output is Format.text else 0
    await conversation.send(text, message_id, images, options.reopen, not options.no_run)
    if waits:
        view = TurnView(output, options.full, options.answer_only)
        state = await follow(conversation, message_id, end - 1, view, options.timeout)
        code = await print_result_and_changes(conversation, state, view, end - 1)
        await wait_until_saved(conversation.log, state.next_seq)
        return code
    remark = f"Sent. `perdure watch {name} --after {end - 1}` shows what comes of it."
    if options.no_run:
        remark = f"Sent. An agent at rest sees it once `perdure resume {name}` makes it run."
    fields = {"conversation_id": name, "message_id": message_id}
    show_result(fields, output, message_id, remark=remark)
    return EXIT_OK


async def ask(options: conversations.Ask) -> None:
    text = read_text(options.question)
    client = await connect_client()
    conversation_id, owner = split_owner(options.conversation_id)
    answer = await client.ask(conversation_id, text, options.timeout, owner)
    usage = answer.usage
    fields = {
        "conversation_id": options.conversation_id,
        "answer": answer.text,
        "usage": usage.model_dump(exclude_defaults=True),
    }
    tokens = usage.prompt_tokens + usage.completion_tokens
    remark = f"({count(tokens, 'token')}, {describe_cost(usage)})"
    show_result(fields, options.output, answer.text, remark=remark)


async def status(options: conversations.Status) -> None:
    if options.follow:
        await follow_statuses(options)
        return
    status = await _query_status(options.conversation_id)
    if not status.title:
        # The status is worth printing without a title too.
        with contextlib.suppress(StoreUnavailable):
            title = await log_pages.title_from_first_message(
                await open_log(options.conversation_id)
            )
            status = status.model_copy(update={"title": title})
    owner = split_owner(options.conversation_id)[1]
    show_result(status_fields(status, owner), options.output, *status_lines(status, owner))


async def follow_statuses(options: conversations.Status) -> None:
    """Print the status as an event whenever it changes, until it is closed. Raises NotFound."""
    output = options.output
    if output is Format.json:
        raise Invalid("A status that is followed has no end, and JSON needs one.", "Use -o jsonl.")
    conversation = open_conversation(await connect_client(), options.conversation_id)
    await conversation.status()
    async for event in conversation.statuses():
        if output is Format.jsonl:
            show_json(dump_event(event), output)
        else:
            show(f"{event.timestamp[11:19]}  {describe_status_event(event)}")


async def _query_status(conversation_id: str) -> ConversationStatus:
    try:
        client = await connect_client()
        return await open_conversation(client, conversation_id).status()
    except Unreachable as error:
        status = await read_logged_status(await open_log(conversation_id))
        if status is None:
            raise NotFound(f"The store has no conversation {conversation_id}.") from error
        note(f"{error} This is what the log says:")
        if status.status != "running":
            return status
        return status.model_copy(update={"trouble": temporal_unreachable(error).sentence})


async def watch(options: conversations.Watch) -> None:
    async def is_over(state: State) -> bool:
        return is_turn_over(state)

    await watch_until(is_over, options)


async def watch_until(is_over: IsOver, options: conversations.Watch) -> None:
    """Show the events, with `--until-rest` until all is over and no event is left."""
    output = options.output
    if output is Format.json and not options.until_rest:
        raise Invalid("A watch has no end, and JSON needs one.", "Use -o jsonl or --until-rest.")
    log = await open_log(options.conversation_id)
    await log_pages.require_conversation(log)
    slots = (
        _follow_until(log, options.after, is_over)
        if options.until_rest
        else log_pages.follow_slots(log, options.after)
    )
    if options.full:
        slots = _load_contents(log, slots)
    if output is Format.json:
        show_json([slot_fields(slot) async for slot in slots], output)
        return
    printer = SlotPrinter(output, options.full)
    async with (
        show_live_steps(_live_steps(options.conversation_id), output) as finish_step,
        run_beside(_note_trouble(options.conversation_id)),
    ):
        async for slot in slots:
            if isinstance(slot, Entry):
                finish_step(slot)
            printer.print_slot(slot)


async def _load_contents(
    log: ReadableLog, slots: AsyncIterator[EntryOrError]
) -> AsyncIterator[EntryOrError]:
    async for slot in slots:
        yield await log_pages.load_contents(log, slot) if isinstance(slot, Entry) else slot


async def _note_trouble(conversation_id: str) -> None:
    with contextlib.suppress(Unreachable, Invalid):  # the store alone is enough to watch
        client = await connect_client()
        await note_trouble(open_conversation(client, conversation_id))


async def _live_steps(conversation_id: str) -> AsyncIterator[tuple[RunningStep, ...]]:
    """Yield the running steps, as long as Temporal answers."""
    with contextlib.suppress(Unreachable, Invalid):
        client = await connect_client()
        async for steps in open_conversation(client, conversation_id).watch_running_steps():
            yield steps


async def _follow_until(log: ReadableLog, after: int, is_over: IsOver) -> AsyncIterator[Entry]:
    """Yield every entry after `after` until all is over. Raises Damaged and Missing."""
    state = await read_state(log)

    async def is_idle() -> bool:
        return await is_over(state)

    async for entry in log.tail(after, is_idle=is_idle):
        state = fold(state, [summarize(entry)])
        yield entry
