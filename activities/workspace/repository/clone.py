"""Cloning a repository into a workspace, whole or not at all.

A clone is made beside its place, under a name of the attempt's own, and takes its place in one
step: what is there is whole. An attempt whose worker was lost leaves half a clone, which the next
one removes.
"""

import asyncio
import os
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar
from uuid import uuid4

from pydantic import ValidationError

from perdure.activities.support.clone_limits import CloneLimits
from perdure.activities.workspace.context_files import read_inside
from perdure.activities.workspace.repository.errors import CloneFailed, explain_failure
from perdure.activities.workspace.repository.git import Online, run_git
from perdure.agent.surroundings import name_directory
from perdure.events.base import Frozen
from perdure.sandbox.sandbox import Sandbox
from perdure.storage.snapshots.folders import remove_tree, to_thread_shielded

MARKER = Path(".git", "perdure-clone.json")
"""The file in a clone by which its conversation knows it again."""

MAX_MARKER_BYTES = 8192

MEASURE_INTERVAL = 0.5
"""Seconds between two looks at the size of a clone."""

OPTIONS = ("--progress", "--template=", "--no-recurse-submodules")


T = TypeVar("T")


@dataclass(frozen=True)
class Repository:
    """A repository to clone; `token_name` is that of the secret with the token."""

    url: str
    branch: str | None = None
    token: str | None = field(default=None, repr=False)
    token_name: str | None = None

    @property
    def directory(self) -> str:
        return name_directory(self.url)


@dataclass(frozen=True)
class Place:
    """The place of a clone: the workspace of a conversation, and the sandbox of its commands."""

    workspace: Path
    sandbox: Sandbox
    conversation_id: str

    @property
    def partial_prefix(self) -> str:
        """The beginning of the names of clones that the conversation is making."""
        return f".perdure-clone-{self.conversation_id}-"


class Marker(Frozen):
    """A clone that was made; the commit of an empty repository is empty."""

    conversation_id: str
    url: str
    branch: str | None
    commit: str


async def clone_repository(
    repository: Repository, place: Place, limits: CloneLimits, report: Callable[[str], None]
) -> str:
    """Clone a repository, unless an earlier attempt of the conversation has; return its commit.

    `report` is called with git's progress. Raises CloneFailed, CloneUnavailable, OSError.
    """
    target = place.workspace / repository.directory
    made = await asyncio.to_thread(_read_marker, target)
    if made is not None and _is_same(made, repository, place):
        return made.commit
    if await asyncio.to_thread(os.path.lexists, target):
        raise CloneFailed(
            "directory_taken",
            f"{repository.url} was not cloned, as there is a {repository.directory!r} in the "
            "workspace already: move that, or leave the repository out.",
        )
    await to_thread_shielded(_remove_partial_clones, place)
    partial = place.workspace / f"{place.partial_prefix}{uuid4().hex}"
    try:
        commit = await _clone(repository, place, partial, limits, report)
        marker = _make_marker(repository, place, commit)
        await to_thread_shielded(_put_in_place, partial, target, marker)
    finally:
        await to_thread_shielded(_remove_partial_clones, place)
    await asyncio.to_thread(place.sandbox.prepare, place.workspace)
    return commit


async def _clone(
    repository: Repository,
    place: Place,
    partial: Path,
    limits: CloneLimits,
    report: Callable[[str], None],
) -> str:
    """Clone into the folder `partial`, and return the commit that is checked out."""
    report(f"Cloning {repository.url} into {repository.directory} ...")
    branch = () if repository.branch is None else ("--branch", repository.branch)
    arguments = ("clone", *OPTIONS, *branch, "--", repository.url, partial.name)
    online = Online(repository.url, repository.token)
    work = run_git(place.workspace, place.sandbox, *arguments, online=online, report=report)
    try:
        async with asyncio.timeout(limits.seconds):
            code, output = await _within_size(work, partial, limits.size)
    except TimeoutError:
        raise CloneFailed(
            "clone_timeout",
            f"Cloning {repository.url} took over {limits.seconds:g} s and was stopped: name a "
            "smaller repository, or let an operator raise PERDURE_REPOSITORY_TIMEOUT.",
        ) from None
    except _TooLarge:
        raise CloneFailed(
            "repository_too_large",
            f"{repository.url} has more than {limits.size:,} bytes and was not cloned: name a "
            "smaller repository, or let an operator raise PERDURE_REPOSITORY_BYTES.",
        ) from None
    if code != 0:
        raise explain_failure(output, repository.url, repository.branch, repository.token_name)
    code, output = await run_git(partial, place.sandbox, "rev-parse", "--verify", "HEAD")
    return output.strip() if code == 0 else ""


class _TooLarge(Exception):
    """A clone has grown beyond its limit."""


async def _within_size(work: Coroutine[Any, Any, T], folder: Path, limit: int) -> T:
    """Await `work` while the folder is within the limit of its size. Raises _TooLarge."""
    task = asyncio.ensure_future(work)
    try:
        while not task.done():
            await asyncio.wait({task}, timeout=MEASURE_INTERVAL)
            if await asyncio.to_thread(_is_larger, folder, limit):
                raise _TooLarge
        return task.result()
    finally:
        if not task.done():
            task.cancel()
            await asyncio.wait({task})


def _is_larger(folder: Path, limit: int) -> bool:
    """Tell whether the files of a folder, which may change meanwhile, have more bytes."""
    size, folders = 0, [folder]
    while folders:
        with suppress(OSError), os.scandir(folders.pop()) as entries:
            for entry in entries:
                with suppress(OSError):
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(Path(entry.path))
                    else:
                        size += entry.stat(follow_symlinks=False).st_size
                if size > limit:
                    return True
    return False


def _make_marker(repository: Repository, place: Place, commit: str) -> Marker:
    return Marker(
        conversation_id=place.conversation_id,
        url=repository.url,
        branch=repository.branch,
        commit=commit,
    )


def _is_same(made: Marker, repository: Repository, place: Place) -> bool:
    return made == _make_marker(repository, place, made.commit)


def _read_marker(target: Path) -> Marker | None:
    try:
        return Marker.model_validate_json(read_inside(target, target / MARKER, MAX_MARKER_BYTES))
    except (OSError, RuntimeError, ValidationError):  # not there, a loop of links, no marker
        return None


def _put_in_place(partial: Path, target: Path, marker: Marker) -> None:
    (partial / MARKER).write_text(marker.model_dump_json())
    partial.rename(target)


def _remove_partial_clones(place: Place) -> None:
    for path in place.workspace.glob(f"{place.partial_prefix}*"):
        remove_tree(path, ignore_errors=True)
