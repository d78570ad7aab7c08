"""Questions about the actions that wait for a person, and their answers."""

import json
from typing import Literal, TypeAlias

from perdure.agent.loop.state import PendingAction, actions_to_confirm
from perdure.cli.chat.chat import Chat
from perdure.cli.output import note, show
from perdure.cli.rendering.chat import describe_action
from perdure.cli.rendering.diffs import style_diff_line
from perdure.errors import Conflict, Invalid
from perdure.events.actions import FileEditorAction
from perdure.events.tools import ActionEvent

QUESTION = "Allow it? (y)es, (n)o, (a)lways, (e)xplain: "

CHOICES = "y allows it, n rejects it, a allows all from now on, e shows all of it."

Choice: TypeAlias = Literal["yes", "no", "always", "explain"]

WORDS: dict[str, Choice] = {
    "y": "yes", "yes": "yes", "n": "no", "no": "no",
    "a": "always", "always": "always", "e": "explain", "explain": "explain",
}  # fmt: skip


def parse_answer(text: str) -> tuple[Choice | None, str]:
    """Parse an answer and the reason of a rejection; what is none of the choices is no answer."""
    word, _, rest = text.strip().partition(" ")
    choice = WORDS.get(word.lower().rstrip(",:"))
    return (choice, rest.strip()) if not rest.strip() or choice == "no" else (None, "")


async def ask_approvals(chat: Chat) -> bool:
    """Ask about each action that waits; return False at the end of the input."""
    always = False
    for action in actions_to_confirm(chat.state):
        event = (await chat.conversation.log.get(action.seq)).event
        assert isinstance(event, ActionEvent), "the slot of an action holds one"
        _show_call(action, event)
        if not always:
            choice, reason = await _ask_about(chat, action, event)
            if choice is None:
                return False
            always = choice == "always"
            if always:
                await _allow_everything(chat)
        await _respond(chat, action, accept=choice != "no", reason=reason)
    return True


def _show_call(action: PendingAction, event: ActionEvent) -> None:
    """Show what waits, and an edit as a difference."""
    first, *rest = describe_action(event).split("\n")
    show(f"\n  ? {action.risk} risk  {first}")
    for line in rest:
        is_edit = isinstance(event.action, FileEditorAction)
        show(style_diff_line(line, indent="    ") if is_edit else f"    {line}")


async def _ask_about(
    chat: Chat, action: PendingAction, event: ActionEvent
) -> tuple[Choice | None, str]:
    """Ask until the answer is one of the choices; None is the end of the input."""
    while (answer := await chat.ask(QUESTION)) is not None:
        if not answer.strip():
            continue
        choice, reason = parse_answer(answer)
        if choice == "explain":
            _explain(action, event)
        elif choice == "no" and not reason and chat.interactive:
            return choice, (await chat.ask("Why not? (Enter for no reason): ") or "").strip()
        elif choice is not None:
            return choice, reason
        else:
            note(f"{answer.strip()!r} is no answer: {CHOICES}", "yellow")
    return None, ""


def _explain(action: PendingAction, event: ActionEvent) -> None:
    """Show the whole call, as the model made it and as it will be run."""
    show(f"  tool       {event.tool_name}, call {event.tool_call_id}, seq {action.seq}")
    show(f"  risk       {action.risk}{f': {event.summary}' if event.summary else ''}")
    fields = event.action.model_dump(mode="json", exclude_none=True) if event.action else {}
    fields = fields.get("data", fields)
    for name, value in fields.items():
        if name != "kind":
            text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            show(f"  {name:<10} {text.replace(chr(10), chr(10) + ' ' * 13)}")


async def _allow_everything(chat: Chat) -> None:
    await chat.conversation.configure({"confirmation": {"policy": "never"}})
    note("From now on nothing waits for you in this conversation; /confirm changes that.")


async def _respond(chat: Chat, action: PendingAction, accept: bool, reason: str) -> None:
    try:
        await chat.conversation.respond(accept, [action.tool_call_id], reason=reason)
    except (Invalid, Conflict) as error:  # somebody else has answered it
        note(str(error))
