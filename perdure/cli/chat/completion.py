"""Completion of what is typed: slash commands, models, formats, and files after `@`."""

import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from prompt_toolkit.completion import CompleteEvent, Completer, Completion, PathCompleter
from prompt_toolkit.document import Document

from perdure.cli.chat.slash_commands import COMMANDS
from perdure.cli.options import EXPORT_FORMATS
from perdure.models.price_table import list_chat_models

MENTION = re.compile(r"(?:^|\s)@(\S*)$")

COMMAND_NAME = re.compile(r"/\S*$")

MAX_MODELS = 50
"""Models that are offered at once."""

POLICIES = ("never", "risky", "risky:LOW", "risky:MEDIUM", "risky:HIGH", "always")


class ChatCompleter(Completer):
    """The completer of a chat; `workspace` returns the folder of the agent, if it is here."""

    def __init__(self, workspace: Callable[[], Path | None]) -> None:
        def folders() -> list[str]:
            inner = workspace()
            return list(dict.fromkeys([*([str(inner)] if inner else []), str(Path.cwd())]))

        self._paths = PathCompleter(get_paths=folders, expanduser=True)

    def get_completions(self, document: Document, event: CompleteEvent) -> Iterable[Completion]:
        text = document.text_before_cursor
        if COMMAND_NAME.fullmatch(text):
            yield from _complete_commands(text)
        elif mention := MENTION.search(text):
            yield from self._paths.get_completions(Document(mention[1]), event)
        elif text.startswith("/"):
            name, _, word = text.partition(" ")
            for choice in _choices(name, word):
                yield Completion(choice, start_position=-len(word))


def is_completed(text: str) -> bool:
    """Tell whether completions are offered while this is typed."""
    return "\n" not in text and bool(COMMAND_NAME.fullmatch(text) or MENTION.search(text))


def _complete_commands(text: str) -> Iterator[Completion]:
    for name, (_, command) in COMMANDS.items():
        if name.startswith(text):
            yield Completion(name, start_position=-len(text), display_meta=command.__doc__ or "")


def _choices(command: str, word: str) -> Iterable[str]:
    choices: Iterable[str] = ()
    if command == "/model":
        provider, slash, _ = word.partition("/")
        choices = sorted(list_chat_models(provider if slash else None))
    elif command == "/export":
        choices = EXPORT_FORMATS
    elif command == "/confirm":
        choices = POLICIES
    return [choice for choice in choices if choice.startswith(word)][:MAX_MODELS]
