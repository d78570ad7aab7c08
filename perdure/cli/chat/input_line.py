"""The input line of a chat: its keys, its history, and what is pasted into it."""

import contextlib
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import platformdirs
from prompt_toolkit import PromptSession
from prompt_toolkit.application import run_in_terminal
from prompt_toolkit.document import Document
from prompt_toolkit.enums import DEFAULT_BUFFER
from prompt_toolkit.filters import Condition, has_focus, is_searching
from prompt_toolkit.formatted_text import AnyFormattedText
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.input.vt100 import Vt100Input
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.keys import Keys
from prompt_toolkit.styles import Style

from perdure.cli.chat.completion import ChatCompleter, is_completed

MAX_SHOWN_PASTE = 10
"""Lines of a paste that are shown as they are; a longer one is named, and sent whole."""

STYLE = Style.from_dict(
    {
        "bottom-toolbar": "noreverse fg:ansibrightblack",
        "live": "fg:ansibrightblack",
        "spinner": "fg:ansicyan",
        "queued": "fg:ansiyellow",
        "prompt": "bold fg:ansigreen",
        "question": "bold fg:ansiyellow",
    }
)

typing_command = has_focus(DEFAULT_BUFFER) & ~is_searching


class Actions(Protocol):
    """The actions of the keys besides editing."""

    def submit(self, text: str, shown: str) -> None: ...
    def interrupt(self) -> None: ...
    def leave(self) -> None: ...
    def show_folded(self) -> None: ...


class RawInput(Vt100Input):
    """The keys of the terminal, unchanged and not echoed, also at the moment of a print.

    prompt_toolkit gives the terminal its usual modes for each line that is printed: an Enter of
    that moment would arrive as Ctrl-J, and other keys be shown twice. Only `lend` gives them.
    """

    _is_lent = False

    def cooked_mode(self) -> AbstractContextManager[None]:
        return super().cooked_mode() if self._is_lent else super().raw_mode()

    @contextlib.contextmanager
    def lend(self) -> Iterator[None]:
        """Let another program have the terminal as usual while inside."""
        self._is_lent = True
        try:
            yield
        finally:
            self._is_lent = False


@dataclass
class InputLine:
    """The input line, from Enter to Enter.

    `render` returns what stands above it, and the prompt; `status` what stands below.
    """

    actions: Actions
    render: Callable[[], AnyFormattedText]
    status: Callable[[], AnyFormattedText]
    workspace: Callable[[], Path | None]
    pastes: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.keys = RawInput(sys.stdin)
        self.session = PromptSession[int](
            input=self.keys,
            message=self.render,
            multiline=True,
            history=open_history(),
            completer=ChatCompleter(self.workspace),
            complete_while_typing=Condition(lambda: is_completed(self.text)),
            complete_in_thread=True,
            bottom_toolbar=self.status,
            key_bindings=self._bind_keys(),
            prompt_continuation="  ",
            tempfile_suffix=".md",
            erase_when_done=True,
            style=STYLE,
        )

    @property
    def text(self) -> str:
        return self.session.default_buffer.text

    @text.setter
    def text(self, text: str) -> None:
        self.session.default_buffer.document = Document(text)

    def redraw(self) -> None:
        self.session.app.invalidate()

    async def open_editor(self) -> None:
        """Edit the text in $VISUAL or $EDITOR, with all that was pasted; it is not sent yet."""
        self.text = self.expand(self.text)
        self.pastes.clear()
        with self.keys.lend():
            await self.session.default_buffer.open_in_editor()

    async def _suspend(self) -> None:
        """Give the terminal back to the shell until `fg`."""
        with self.keys.lend():
            await run_in_terminal(lambda: os.kill(0, signal.SIGTSTP))

    def remember(self, text: str) -> None:
        """Add a message to the history, unless it repeats the last one."""
        history = self.session.history
        if text.strip() and [text] != history.get_strings()[-1:]:
            history.append_string(text)

    def expand(self, text: str) -> str:
        """Put the pasted texts in the place of their names."""
        for name, pasted in self.pastes.items():
            text = text.replace(name, pasted)
        return text

    def _bind_keys(self) -> KeyBindings:
        keys = KeyBindings()
        bind, actions = keys.add, self.actions
        bind("enter", filter=typing_command)(self._press_enter)
        bind("escape", "enter", filter=typing_command)(_insert_newline)
        bind("c-j", filter=typing_command)(_insert_newline)
        bind(Keys.BracketedPaste, filter=typing_command)(self._paste)
        bind("c-c", filter=typing_command)(lambda _: actions.interrupt())
        bind("<sigint>")(lambda _: actions.interrupt())
        bind("c-d", filter=typing_command & Condition(lambda: not self.text))(
            lambda _: actions.leave()
        )
        # prompt_toolkit's own binding ends the prompt with what was written.
        bind("c-x", "c-e", filter=typing_command)(lambda _: self.open_editor())
        bind("c-o", filter=typing_command)(lambda _: actions.show_folded())
        bind("c-z", filter=typing_command)(lambda _: self._suspend())
        return keys

    def _press_enter(self, event: KeyPressEvent) -> None:
        """Send, or take a completion that was chosen, or break the line after a backslash."""
        buffer = event.current_buffer
        if buffer.complete_state and buffer.complete_state.current_completion:
            buffer.complete_state = None
        elif buffer.document.char_before_cursor == "\\":
            buffer.delete_before_cursor()
            buffer.insert_text("\n")
        else:
            shown, text = buffer.text, self.expand(buffer.text)
            self.pastes.clear()
            buffer.reset()
            self.actions.submit(text, shown)

    def _paste(self, event: KeyPressEvent) -> None:
        pasted = event.data.replace("\r\n", "\n").replace("\r", "\n")
        count = pasted.rstrip("\n").count("\n") + 1
        if count <= MAX_SHOWN_PASTE:
            event.current_buffer.insert_text(pasted)
            return
        name = f"[pasted {count} lines]"
        if self.pastes.get(name, pasted) != pasted:
            name = f"[pasted {count} lines, {len(self.pastes) + 1}]"
        self.pastes[name] = pasted
        event.current_buffer.insert_text(name)


def _insert_newline(event: KeyPressEvent) -> None:
    event.current_buffer.insert_text("\n")


def open_history() -> History:
    """Open the history of all chats, readable only by its owner; without a file, in memory."""
    path = platformdirs.user_state_path("perdure") / "chat_history"
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        os.close(os.open(path, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600))
        path.chmod(0o600)
        return FileHistory(path)
    return InMemoryHistory()
