"""The first lines of a chat: who answers, and where it works."""

from rich.text import Text

from perdure.cli.chat.chat import Chat
from perdure.cli.output import show


def show_banner(chat: Chat) -> None:
    """Show the model, the workspace, the sandbox and the conversation's id."""
    agent, settings = chat.agent, chat.environment.settings
    show(Text.assemble(("perdure chat", "bold"), f"  {agent.model.name if agent else ''}"))
    place = chat.workspace or "a folder of the conversation's own, where its worker runs"
    network = "with network" if agent is not None and agent.network else "without network"
    choice = "the strongest that works" if settings.sandbox == "auto" else settings.sandbox
    fields = {
        "workspace": place,
        "sandbox": f"{choice}, {network}",
        "conversation": chat.conversation.id,
    }
    for name, value in fields.items():
        show(Text(f"  {name:<13} {value}", "dim"))
    show(Text("  /help lists commands and keys; ^C interrupts; ^D leaves a turn at work", "dim"))
