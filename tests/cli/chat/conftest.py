"""A chat on a terminal, with a history file of its own."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import TypeAlias

import pytest

from tests.cli.command import Perdure
from tests.cli.terminal import Terminal, open_terminal

OpenChat: TypeAlias = Callable[..., AbstractAsyncContextManager[Terminal]]

both_widths = pytest.mark.parametrize("columns", [80, pytest.param(200, marks=pytest.mark.long)])
"""Repeat a session on a narrow and on a wide terminal."""


@pytest.fixture
def state_folder(tmp_path: Path) -> Path:
    """The folder of the user's state."""
    return tmp_path / "state"


@pytest.fixture
def open_chat(perdure: Perdure, state_folder: Path) -> OpenChat:
    """A function that starts `perdure chat` on a terminal."""

    def start(*args: str, **options: object) -> AbstractAsyncContextManager[Terminal]:
        home = {"XDG_STATE_HOME": str(state_folder)}
        return open_terminal(perdure, "chat", *args, **{**home, **options})  # type: ignore[arg-type]

    return start
