"""Recall of skills, instructions and facts for a message or a touched file."""

import asyncio
import os
from collections.abc import Collection, Iterable, Sequence
from itertools import takewhile
from pathlib import Path, PurePosixPath
from typing import Literal

from perdure.activities.memory import record_memories
from perdure.activities.support.resources import Resources
from perdure.activities.support.step import now
from perdure.activities.support.writer import Writer
from perdure.activities.workspace.context_files import collect_facts, read_instructions
from perdure.activities.workspace.skill_files import find_skills
from perdure.agent.extensions import Skills
from perdure.agent.knowledge.recall import (
    RecalledContext,
    RepositoryFacts,
    recall_repository,
    recall_skills,
    recall_workspace,
)
from perdure.agent.knowledge.skills import Match, Skill, skills_for_message, skills_for_path
from perdure.agent.spec import Agent
from perdure.events.messages import RecallEvent

MAX_QUERY_CHARS = 1000
"""Length limit of the query in a recall event."""

FILE_PREFIX = "file:"


async def record_recall(
    resources: Resources,
    writer: Writer,
    part: str,
    text: str,
    spec: Agent,
    shown_skills: Sequence[str] | None,
) -> tuple[str, ...]:
    """Record under the name `part` what a user's message recalls; return the skills shown by now.

    `shown_skills` is None before the first message.
    """
    workspace = resources.workspace(spec, writer.log)
    shown = tuple(shown_skills or ())
    recalled = await recall_for_message(shown_skills is None, text, spec, workspace, shown)
    if recalled is not None:
        await writer.write(part, recalled, optional=True)
        shown = (*shown, *recalled.skills)
    await record_memories(resources, writer, f"{part} of memories", text, spec)
    return shown


async def recall_for_message(
    first: bool, text: str, spec: Agent, workspace: Path, activated: Collection[str]
) -> RecallEvent | None:
    """Recall what a user's message triggers; the first message also recalls the workspace.

    `activated` names the skills of earlier recalls. Unreadable files are left out.
    """
    recalled = await asyncio.to_thread(
        _recall_triggered, first, text, spec.skills, workspace, activated
    )
    return _recall_event("WORKSPACE_CONTEXT" if first else "KNOWLEDGE", text, recalled)


async def recall_for_files(
    touches: Iterable[str], spec: Agent, workspace: Path, activated: Collection[str]
) -> RecallEvent | None:
    """Recall the skills and instructions for the files that an action touches."""
    files = [name.removeprefix(FILE_PREFIX) for name in touches if name.startswith(FILE_PREFIX)]
    if not files:
        return None
    recalled, triggers = await asyncio.to_thread(
        _recall_touched, files, spec.skills, workspace, activated
    )
    return _recall_event("KNOWLEDGE", ", ".join(triggers), recalled)


async def recall_for_repository(
    facts: RepositoryFacts, spec: Agent, workspace: Path, activated: Collection[str]
) -> RecallEvent | None:
    """Recall a repository that was cloned into the workspace, and the instructions at its top."""
    inside = f"{facts.directory}/README"
    nested = await asyncio.to_thread(
        lambda: _nested_instructions(workspace.resolve(), inside, spec.skills.instructions)
    )
    matches = [Match(skill, "") for skill in nested if skill.name not in activated]
    recalled = recall_repository(facts, matches)
    return _recall_event("WORKSPACE_CONTEXT", facts.url, recalled)


def _recall_event(
    kind: Literal["WORKSPACE_CONTEXT", "KNOWLEDGE"], query: str, recalled: RecalledContext
) -> RecallEvent | None:
    if not recalled.content:
        return None
    return RecallEvent(
        timestamp=now(),
        recall_type=kind,
        query=query[:MAX_QUERY_CHARS],
        skills=recalled.skills,
        content=recalled.content,
    )


def _recall_triggered(
    first: bool, text: str, settings: Skills, workspace: Path, activated: Collection[str]
) -> RecalledContext:
    workspace = workspace.resolve()
    skills, problems = find_skills(settings, workspace)
    triggered = skills_for_message(text, skills, activated)
    if not first:
        return recall_skills(triggered)
    facts = collect_facts(workspace, now()[:10])
    instructions = read_instructions(workspace, workspace, settings.instructions)
    return recall_workspace(facts, instructions, skills, triggered, problems)


def _recall_touched(
    files: Iterable[str], settings: Skills, workspace: Path, activated: Collection[str]
) -> tuple[RecalledContext, list[str]]:
    workspace = workspace.resolve()
    skills, _ = find_skills(settings, workspace)
    matches: dict[str, Match] = {}
    for path in filter(None, (_relative_path(workspace, file) for file in files)):
        nested = [
            Match(skill, path)
            for skill in _nested_instructions(workspace, path, settings.instructions)
        ]
        for match in (*nested, *skills_for_path(path, skills, activated)):
            if match.skill.name not in activated:
                matches.setdefault(match.skill.name, match)
    recalled = recall_skills(list(matches.values()))
    return recalled, list(dict.fromkeys(match.trigger for match in matches.values()))


def _relative_path(workspace: Path, file: str) -> str | None:
    """Return the path of a file relative to the workspace, None if it is outside."""
    path = os.path.relpath(os.path.normpath(workspace / file), workspace)
    return None if path == ".." or path.startswith("../") else path


def _nested_instructions(workspace: Path, path: str, names: Iterable[str]) -> list[Skill]:
    """Return the instructions of the folders on the way to a file, each as a skill."""
    folders = (workspace / folder for folder in reversed(PurePosixPath(path).parents[:-1]))
    plain = [name for name in names if "/" not in name and name != PurePosixPath(path).name]
    return [
        Skill(name=file.name, content=file.text, location=file.name)
        for folder in takewhile(os.path.isdir, folders)
        for file in read_instructions(workspace, folder, plain)
    ]
