"""`perdure show`: print a log, with the store alone."""

from perdure.cli.declarations.conversations import Show
from perdure.cli.environment import open_log
from perdure.cli.output import note, print_list
from perdure.cli.rendering import log_pages
from perdure.cli.rendering.events import SlotPrinter, slot_fields
from perdure.errors import NotFound
from perdure.events.entry import Entry
from perdure.operations.error_reports import EXIT_FAILED, EXIT_OK
from perdure.storage.log.trouble import load_trouble


async def show_log(options: Show) -> int:
    log = await open_log(options.conversation_id)
    await log_pages.require_conversation(log)
    if options.agent:
        from perdure.cli.agent_in_force import show_agent  # slow

        return await show_agent(log, options.output)
    kinds: set[str] = set()
    damaged = count = 0
    output, kind, seq = options.output, options.kind, options.seq
    full = options.full or seq is not None
    printer = SlotPrinter(output, full)
    with print_list(slot_fields, printer.print_slot, output) as print_slot:
        after = options.after if seq is None else seq - 1
        async for slot in log_pages.read_slots(log, after):
            if isinstance(slot, Entry):
                kinds.add(slot.event.kind)
                if kind not in (None, slot.event.kind):
                    continue
                slot = await log_pages.load_contents(log, slot) if full else slot
            else:
                damaged += 1
            print_slot(slot)
            count += 1
            if count == options.limit or seq is not None:
                break
    if seq is not None and not count:
        end = await log.end()
        raise NotFound(f"There is no event {seq}.", f"The newest one is {end - 1}.")
    if kind is not None and not count and kinds:
        note(f"No event is a {kind}: there are {', '.join(sorted(kinds))}.")
    if trouble := await load_trouble(log, await log.end()):
        note(trouble, "yellow")
    if damaged:
        note(f"{damaged} of the objects cannot be read.", "red")
    return EXIT_FAILED if damaged else EXIT_OK
