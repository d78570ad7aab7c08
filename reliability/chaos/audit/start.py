"""The audit of what an agent starts with: its clone, its MCP servers, its user's secrets."""

import base64
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from examples.bfcl.objects import Objects, StoredEvent
from reliability.chaos.audit.calls import successful_calls
from reliability.chaos.audit.log import Violation, ViolationKind
from reliability.chaos.load.equipment import README, TOKEN_NAME
from reliability.chaos.load.equipped_scripts import PRINTED_SECRET
from reliability.crashes.scenario import SECRETS

CLONED_FILE = "project/README"

EXPECTED_OUTPUT = f"{README}\n<secret:{PRINTED_SECRET}> {len(SECRETS[TOKEN_NAME])}"
"""What a command finds: the clone, one secret that is masked, and the length of another."""


def check_start(events: Sequence[StoredEvent]) -> Iterator[Violation]:
    """Check the conversation of an agent that starts with all of it."""
    clones = [
        event
        for event in events
        if event.kind == "ConversationStateUpdateEvent" and event.fields.get("key") == "repository"
    ]
    if len(clones) != 1:
        kind = ViolationKind.DUPLICATED if clones else ViolationKind.LOST
        yield Violation(kind, f"the clone is on record {len(clones)} times")
    for call in successful_calls(events, "terminal"):
        if EXPECTED_OUTPUT not in call.text:
            what = f"slot {call.answer.seq}: a command found {call.text!r}"
            yield Violation(ViolationKind.LOST, what)
    for call in successful_calls(events, "one__add", "two__add"):
        if call.text != str(call.arguments["a"] + 1):
            what = f"slot {call.answer.seq}: {call.tool} answered {call.text!r}"
            yield Violation(ViolationKind.DAMAGED, what)


def check_secrets(bodies: Objects, secrets: Mapping[str, str]) -> Iterator[Violation]:
    """Check that no secret is in any of the bodies, as it is or in base64; by their names."""
    for name, value in secrets.items():
        forms = (value.encode(), base64.b64encode(value.encode()).rstrip(b"="))
        for place, body in bodies.items():
            if any(form in body for form in forms):
                yield Violation(ViolationKind.EXPOSED, f"{place} has the value of {name}")


def check_clone_files(folder: Path, secrets: Mapping[str, str]) -> Iterator[Violation]:
    """Check the restored files of a conversation: the clone is there, and no secret is."""
    readme = folder / CLONED_FILE
    if not readme.is_file() or readme.read_text() != f"{README}\n":
        yield Violation(ViolationKind.LOST, f"{CLONED_FILE} is not in the newest snapshot")
    files = (path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    bodies = {str(path.relative_to(folder)): path.read_bytes() for path in files}
    yield from check_secrets(bodies, secrets)
