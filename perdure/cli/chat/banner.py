"""The first lines of a chat: who answers, and where it works."""

from rich.text import Text

from perdure.cli.chat.chat import Chat
from perdure.cli.output import show
from perdure.events.control import ConversationStateUpdateEvent
from perdure.events.entry import Entry
from perdure.operations.worker.process import choose_configured_sandbox
from perdure.storage.log.readable import ReadableLog

NEWEST_EVENTS = 100
"""The events among which the newest opening of a conversation is looked for."""


async def show_banner(chat: Chat) -> None:
    """Show the model, the workspace, the sandbox and the conversation's id."""
    agent = chat.agent
    show(Text.assemble(("perdure chat", "bold"), f"  {agent.model.name if agent else ''}"))
    place = chat.workspace or "a folder of the conversation's own, where its worker runs"
    network = "with network" if agent is not None and agent.network else "without network"
    fields = {
        "workspace": place,
        "sandbox": f"{await _find_sandbox(chat)}, {network}",
        "conversation": chat.conversation.id,
    }
    for name, value in fields.items():
        show(Text(f"  {name:<13} {value}", "dim"))
    show(Text("  /help lists commands and keys; ^C interrupts; ^D leaves a turn at work", "dim"))


async def _find_sandbox(chat: Chat) -> str:
    """Find the sandbox that the worker chose; one that is elsewhere says so in the log."""
    environment = chat.environment
    if environment.own_stack is not None:  # its worker starts, with these settings
        return choose_configured_sandbox(environment.settings).sandbox.name
    info = environment.stack_info
    chosen = info.sandbox if info is not None else await _read_sandbox(chat.conversation.log)
    return (chosen or "as its worker chooses").partition(", ")[0]


async def _read_sandbox(log: ReadableLog) -> str | None:
    """Read which sandbox the worker had that opened the conversation last."""
    end = await log.end()
    first = max(0, end - NEWEST_EVENTS)
    for slot in reversed(await log.read_slots(first, end - first)):  # some may be damaged
        event = slot.event if isinstance(slot, Entry) else None
        if isinstance(event, ConversationStateUpdateEvent) and event.key == "opened":
            name: str | None = event.value.get("sandbox", {}).get("name")
            return name
    return None
