"""Skills, from the folders that a spec names and those that a workspace brings along."""

import logging
import os
from collections import deque
from collections.abc import Iterator
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import TypeAlias

from activities.workspace_files import Unreadable, read_inside
from agent.skills import BadSkill, Skill, skill_from
from agent.spec import Skills
from tools.workspace import printable

logger = logging.getLogger(__name__)

WORKSPACE_FOLDERS = (
    ".agents/skills",
    ".openhands/skills",
    ".openhands/microagents",
    ".claude/skills",
    ".claude/rules",
    ".cursor/rules",
)
"""Where a workspace keeps skills; of two with one name the first counts."""

LARGEST = 64 * 1024
"""Bytes of a skill: a longer one would be shown only in part anyway."""

MOST_SKILLS = 200
MOST_ENTRIES = 5_000
"""Of one folder and the folders in it: what is looked at before the rest is given up."""

DEEPEST = 4
KEPT = 512

Stamp: TypeAlias = tuple[int, int, int]


def skills_of(wanted: Skills, workspace: Path) -> tuple[list[Skill], list[str]]:
    """The skills, and a sentence for each that cannot be used.

    The spec's folders come before the workspace's, as a person named them and a repository may
    come from anybody. One of those is relative to the workspace, or anywhere on this machine. A
    skill of the workspace is read only where it is in the workspace.
    """
    skills: dict[str, Skill] = {}
    problems: list[str] = []
    for folder in _folders(wanted, workspace, problems):
        for count, (path, agent_skill) in enumerate(_files(folder, workspace)):
            if count == MOST_SKILLS:
                problems.append(f"{_shown(folder, workspace)}: only {count} of its files are read")
                break
            try:
                skill = _skill(path, folder, workspace, agent_skill)
            except (OSError, RuntimeError, ValueError) as error:
                problems.append(f"{_shown(path, workspace)}: {_reason(error)}")
            else:
                skills.setdefault(skill.name, skill)
    return list(skills.values()), problems


def _folders(wanted: Skills, workspace: Path, problems: list[str]) -> Iterator[Path]:
    for name in wanted.folders:
        # Not Path's own, which raise where there is no home, no permission or no such name.
        given = os.path.normpath(workspace / os.path.expanduser(name))  # noqa: PTH111
        if os.path.isdir(given):  # noqa: PTH112
            real = Path(given).resolve()
            yield real if real.is_relative_to(workspace) else Path(given)
        else:
            problems.append(f"{printable(name)}: there is no such folder")
    if wanted.workspace:
        yield from (workspace / name for name in WORKSPACE_FOLDERS)


def _root(folder: Path, workspace: Path) -> Path:
    """What no file of the folder may lead out of: anything goes where a person named the folder."""
    return workspace if folder.is_relative_to(workspace) else Path("/")


def _files(folder: Path, workspace: Path) -> Iterator[tuple[Path, bool]]:
    """The markdown files, and whether each is a `SKILL.md`: of its folder nothing else is one."""
    root = _root(folder, workspace).resolve()
    looked = 0
    left = deque([(folder, 0)])
    while left and looked < MOST_ENTRIES:
        here, depth = left.popleft()
        entries = _entries(here, root, MOST_ENTRIES - looked)
        looked += len(entries) + 1
        own = [path for path in entries if path.name.lower() == "skill.md"]
        if own:
            yield own[0], True
            continue
        for path in entries:
            if path.suffix in (".md", ".mdc") and path.stem.lower() != "readme":
                yield path, False
            elif depth < DEEPEST:
                left.append((path, depth + 1))


def _entries(folder: Path, root: Path, most: int) -> list[Path]:
    """What is in a folder, if it is one, in the order of the names."""
    try:
        if not folder.resolve().is_relative_to(root):
            return []
        with os.scandir(folder) as entries:
            return sorted(Path(entry) for entry in islice(entries, most))
    except (OSError, RuntimeError):
        return []


def _skill(path: Path, folder: Path, workspace: Path, agent_skill: bool) -> Skill:
    """Raises OSError, RuntimeError (a loop of links), BadSkill."""
    own = path.parent.name if agent_skill else path.relative_to(folder).with_suffix("").as_posix()
    root = _root(folder, workspace)
    location = _shown(path, workspace) if root == workspace else None
    found = path.stat()
    stamp = (found.st_mtime_ns, found.st_ctime_ns, found.st_size)
    skill = _parsed(path, root, stamp, printable(own), location, agent_skill)
    if isinstance(skill, str):
        raise BadSkill(skill)
    return skill


@lru_cache(maxsize=KEPT)
def _parsed(
    path: Path, root: Path, _stamp: Stamp, name: str, location: str | None, agent_skill: bool
) -> Skill | str:
    """The skill, or why it is none; the stamp makes of a changed file another one."""
    try:
        raw = read_inside(root, path, LARGEST + 1)
        return skill_from(_text(raw), name, location, agent_skill=agent_skill)
    except (BadSkill, Unreadable) as error:
        logger.warning("the skill %s cannot be used: %s", path, error)
        return str(error)


def _text(raw: bytes) -> str:
    if len(raw) > LARGEST:
        raise BadSkill(f"it has over {LARGEST:,} bytes")
    try:
        text = raw.decode()
    except UnicodeDecodeError as error:
        raise BadSkill("it is not UTF-8 text") from error
    if "\0" in text:
        raise BadSkill("it is a binary file")
    return text


def _shown(path: Path, workspace: Path) -> str:
    inside = path.is_relative_to(workspace)
    return printable(path.relative_to(workspace).as_posix() if inside else path)


def _reason(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error)
