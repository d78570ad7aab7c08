"""The audit of a conversation that a client had: its log, and what was said to it."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from examples.bfcl.objects import StoredEvent, fetch_objects, parse_objects
from perdure.storage import keys
from perdure.storage.log.state import read_state
from reliability.chaos.audit.log import Acknowledgements, audit
from reliability.chaos.audit.whole import verify_log
from reliability.chaos.environment import USER
from reliability.chaos.tools import read_effects
from reliability.clients.program import Account
from reliability.clients.stage import ClientsStage

REST = ("finished", "closed")


async def audit_conversation(stage: ClientsStage, account: Account) -> list[str]:
    """List what is wrong with the log of a conversation, and with what the client saw of it."""
    log = stage.following.client.conversation(account.id).log
    prefix = keys.conversation_prefix(USER, account.id)
    events = parse_objects(await fetch_objects(log.store, prefix))
    effects = read_effects(stage.effects) if stage.effects.exists() else []
    mine = [effect for effect in effects if effect.conversation_id == account.id]
    faults = [
        f"{it.kind.value}: {it.description}" for it in audit(events, Acknowledgements({}, {}), mine)
    ]
    faults += [f"{it.kind.value}: {it.description}" for it in await verify_log(log)]
    faults += check_sent(events, account.sent)
    faults += check_answers(events, account.answers)
    state = await read_state(log)
    if state.status not in REST:
        faults.append(f"it ends {state.status}: {state.reason}")
    return faults


def check_sent(events: Sequence[StoredEvent], sent: dict[str, int]) -> Iterator[str]:
    """Check that each message is there, and no more often than it was sent without an answer."""
    texts = [text_of(event) for event in events if is_message(event, "user")]
    for text, most in sent.items():
        if not 1 <= (count := texts.count(text)) <= most:
            yield f"the message {text!r} was sent {most} times and is there {count} times"
    for text, count in Counter(texts).items():
        if text not in sent:
            yield f"the message {text!r}, which nobody sent, is there {count} times"


def check_answers(events: Sequence[StoredEvent], answers: Sequence[str]) -> Iterator[str]:
    """Check that the client has seen answers of the log, in the order of the log."""
    said = iter([text_of(event) for event in events if is_message(event, "agent")])
    for answer in answers:
        if answer not in said:
            yield f"the client has seen {answer!r}, which is not the next answer of the log"


def is_message(event: StoredEvent, source: str) -> bool:
    return event.kind == "MessageEvent" and event.fields.get("source") == source


def text_of(event: StoredEvent) -> str:
    content: list[dict[str, Any]] = event.fields["llm_message"]["content"]
    return "".join(str(part.get("text", "")) for part in content)
