"""Where a conversation's files are, for people."""

import os
from pathlib import Path

from perdure.errors import Invalid
from perdure.sandbox.owners import prepare_owner
from perdure.sandbox.sandbox import TOOLS_UID, UNCONFINED, SandboxUnusable
from perdure.settings.settings import Settings, load_settings
from perdure.temporal.names import workspace_folder

OWN_FOLDERS = "workspaces"


def find_own_folder(
    settings: Settings, conversation_id: str, user_id: str | None = None
) -> Path | None:
    """Return a conversation's own folder if workers have run on this machine's data folder.

    The workers behind a gateway have other folders, wherever they run. `user_id` is the user whose
    conversation it is, by default that of the settings.
    """
    if settings.gateway is not None:
        return None
    folders = settings.data.absolute() / OWN_FOLDERS
    folder = folders / workspace_folder(user_id or settings.user, conversation_id)
    return folder if (folders / ".home").exists() else None


def find_workspace(
    settings: Settings,
    conversation_id: str,
    directory: str | None,
    user_id: str | None = None,
) -> str | None:
    """Return the folder in which a conversation works; None if its own is on another machine."""
    folder = directory or find_own_folder(settings, conversation_id, user_id)
    return None if folder is None else str(folder)


def describe_workspace(
    settings: Settings,
    conversation_id: str,
    directory: str | None,
    user_id: str | None = None,
) -> str:
    """Describe where the files are; `directory` is a user's, None the conversation's own."""
    if directory is not None:
        is_root = os.geteuid() == 0 and settings.sandbox != UNCONFINED.name
        suffix = f" (commands run as user {TOOLS_UID}; no file changes its owner)"
        return directory + (suffix if is_root and Path(directory).exists() else "")
    folder = find_own_folder(settings, conversation_id, user_id)
    if folder is None:
        return f"a folder of its own, with its worker (`perdure files {conversation_id}`)"
    return f"{folder} (a folder of its own)"


def absolute_path(directory: Path | None) -> str | None:
    return None if directory is None else str(directory.absolute())


def check_workspace(directory: Path) -> None:
    """Check that commands can write the directory, where the worker is on this machine.

    Raises Invalid, before anything is started or changed.
    """
    settings = load_settings()
    if settings.store is not None or settings.gateway is not None:
        return  # the worker may be elsewhere, with other files
    if directory.exists() and not directory.is_dir():
        raise Invalid(f"{directory} is not a directory.", "Name one with --workspace.")
    if not directory.exists() or settings.sandbox == UNCONFINED.name:
        return
    try:
        prepare_owner(directory, settings.data.absolute() / OWN_FOLDERS)
    except SandboxUnusable as error:
        raise Invalid(str(error)) from error
