"""Finding skills in the folders of a spec and of a workspace."""

import logging
import os
from collections import deque
from collections.abc import Iterator
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import TypeAlias

from perdure.activities.workspace.context_files import UnreadableFile, read_inside
from perdure.agent.extensions import Skills
from perdure.agent.knowledge.skills import BadSkill, Skill, parse_skill
from perdure.tools.workspace import printable

logger = logging.getLogger(__name__)

WORKSPACE_FOLDERS = (
    ".agents/skills",
    ".openhands/skills",
    ".openhands/microagents",
    ".claude/skills",
    ".claude/rules",
    ".cursor/rules",
)
"""Folders of a workspace that hold skills; of two with one name the first counts."""

MAX_SKILL_BYTES = 64 * 1024
"""Size limit of a skill; a longer one would be shown only in part."""

MAX_SKILLS = 200
MAX_FOLDER_ENTRIES = 5_000
"""Most entries that are looked at in one folder and the folders in it."""

MAX_FOLDER_DEPTH = 4
PARSED_CACHE_SIZE = 512

Stamp: TypeAlias = tuple[int, int, int]


def find_skills(settings: Skills, workspace: Path) -> tuple[list[Skill], list[str]]:
    """Find the skills, and return a sentence for each that cannot be used.

    The spec's folders come before the workspace's, as a person named them and a repository may
    come from anybody. They are relative to the workspace, or anywhere on this machine. A skill of
    the workspace is read only if it is inside the workspace.
    """
    skills: dict[str, Skill] = {}
    problems: list[str] = []
    for folder in _folders(settings, workspace, problems):
        for count, (path, agent_skill) in enumerate(_skill_files(folder, workspace)):
            if count == MAX_SKILLS:
                problems.append(
                    f"{_display_path(folder, workspace)}: only {count} of its files are read"
                )
                break
            try:
                skill = _load_skill(path, folder, workspace, agent_skill)
            except (OSError, RuntimeError, ValueError) as error:
                reason = getattr(error, "strerror", None) or error
                problems.append(f"{_display_path(path, workspace)}: {reason}")
            else:
                skills.setdefault(skill.name, skill)
    return list(skills.values()), problems


def _folders(settings: Skills, workspace: Path, problems: list[str]) -> Iterator[Path]:
    for name in settings.folders:
        # Path's own methods raise without a home, a permission or such a name.
        path_name = os.path.normpath(workspace / os.path.expanduser(name))  # noqa: PTH111
        if os.path.isdir(path_name):  # noqa: PTH112
            real = Path(path_name).resolve()
            yield real if real.is_relative_to(workspace) else Path(path_name)
        else:
            problems.append(f"{printable(name)}: there is no such folder")
    if settings.workspace:
        yield from (workspace / name for name in WORKSPACE_FOLDERS)


def _confining_root(folder: Path, workspace: Path) -> Path:
    """Return the root that no file of the folder may leave; `/` if a person named the folder."""
    return workspace if folder.is_relative_to(workspace) else Path("/")


def _skill_files(folder: Path, workspace: Path) -> Iterator[tuple[Path, bool]]:
    """Yield the markdown files, and whether each is a `SKILL.md`, alone in its folder."""
    root = _confining_root(folder, workspace).resolve()
    seen_count = 0
    queue = deque([(folder, 0)])
    while queue and seen_count < MAX_FOLDER_ENTRIES:
        here, depth = queue.popleft()
        entries = _list_folder(here, root, MAX_FOLDER_ENTRIES - seen_count)
        seen_count += len(entries) + 1
        own = [path for path in entries if path.name.lower() == "skill.md"]
        if own:
            yield own[0], True
            continue
        for path in entries:
            if path.suffix in (".md", ".mdc") and path.stem.lower() != "readme":
                yield path, False
            elif depth < MAX_FOLDER_DEPTH:
                queue.append((path, depth + 1))


def _list_folder(folder: Path, root: Path, most: int) -> list[Path]:
    """List a folder in the order of names; an unreadable one is empty."""
    try:
        if not folder.resolve().is_relative_to(root):
            return []
        with os.scandir(folder) as entries:
            return sorted(Path(entry) for entry in islice(entries, most))
    except (OSError, RuntimeError):
        return []


def _load_skill(path: Path, folder: Path, workspace: Path, agent_skill: bool) -> Skill:
    """Load a skill. Raises OSError, RuntimeError (a loop of links), BadSkill."""
    own = path.parent.name if agent_skill else path.relative_to(folder).with_suffix("").as_posix()
    root = _confining_root(folder, workspace)
    location = _display_path(path, workspace) if root == workspace else None
    status = path.stat()
    stamp = (status.st_mtime_ns, status.st_ctime_ns, status.st_size)
    skill = _parse_cached(path, root, stamp, printable(own), location, agent_skill)
    if isinstance(skill, str):
        raise BadSkill(skill)
    return skill


@lru_cache(maxsize=PARSED_CACHE_SIZE)
def _parse_cached(
    path: Path, root: Path, _stamp: Stamp, name: str, location: str | None, agent_skill: bool
) -> Skill | str:
    """Parse a skill, or say why it is invalid; the stamp is part of the cache's key."""
    try:
        raw = read_inside(root, path, MAX_SKILL_BYTES + 1)
        return parse_skill(_decode(raw), name, location, agent_skill=agent_skill)
    except (BadSkill, UnreadableFile) as error:
        logger.warning("the skill %s cannot be used: %s", path, error)
        return str(error)


def _decode(raw: bytes) -> str:
    if len(raw) > MAX_SKILL_BYTES:
        raise BadSkill(f"it has over {MAX_SKILL_BYTES:,} bytes")
    try:
        text = raw.decode()
    except UnicodeDecodeError as error:
        raise BadSkill("it is not UTF-8 text") from error
    if "\0" in text:
        raise BadSkill("it is a binary file")
    return text


def _display_path(path: Path, workspace: Path) -> str:
    inside = path.is_relative_to(workspace)
    return printable(path.relative_to(workspace).as_posix() if inside else path)
