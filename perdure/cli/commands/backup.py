"""`perdure backup` and `perdure drill`: copy a store, and restore and verify one."""

import contextlib
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic
from typing import Any

from perdure.cli.declarations.operations import Backup, Drill
from perdure.cli.environment import find_servers
from perdure.cli.moments import parse_since
from perdure.cli.output import is_terminal, show_result
from perdure.client.store import open_configured_store
from perdure.errors import Invalid
from perdure.operations import drill as drills
from perdure.operations.error_reports import EXIT_FAILED, EXIT_OK
from perdure.storage.backup.objects import Copied
from perdure.storage.backup.stores import copy_store
from perdure.storage.files import FileStore
from perdure.storage.open import open_store
from perdure.storage.store import Store
from perdure.wording import count


async def backup(options: Backup) -> None:
    settings = (await find_servers()).settings
    source, target = open_configured_store(settings), _open(options.into)
    _require_other(settings.store, options.into)
    begun, now = monotonic(), datetime.now(UTC)
    copied = await copy_store(source, target, now, _progress("copied"))
    seconds = monotonic() - begun
    fields = {"into": options.into, "at": now.isoformat(), **_fields(copied), "seconds": seconds}
    what = f"{count(copied.objects, 'object')} that it lacked, {count(copied.events, 'event')}"
    remark = f"{options.into} has {_describe(copied)}: {what} of them, in {seconds:.1f} s."
    show_result(fields, options.output, remark=remark)


async def drill(options: Drill) -> int:
    moment = _parse_moment(options.at)
    settings = (await find_servers()).settings
    source = _open(options.source) if options.source else open_configured_store(settings)
    if options.into is not None:
        _require_other(options.source or settings.store, options.into)
    with _open_target(options.into) as target:
        begun = monotonic()
        restored = await drills.restore(source, target, moment, _progress("restored"))
        seconds = monotonic() - begun
        result = await drills.verify_restored(target, restored, _show_progress("verified"))
    fields = {"at": moment.isoformat(), "into": options.into, "seconds": seconds}
    fields |= _fields(restored) | {"verified": result.verified, "to_reopen": result.to_reopen}
    show_result(
        {**fields, "damages": result.damages},
        options.output,
        *_describe_drill(result, moment, seconds),
        remark=_next_step(result, options.into),
    )
    return EXIT_FAILED if result.damages else EXIT_OK


def _parse_moment(text: str) -> datetime:
    now = datetime.now(UTC)
    moment = now if text == "now" else parse_since(text, now).astimezone(UTC)
    if moment > now:
        raise Invalid(f"{text!r} lies in the future.", "Write now, 2h or 1d for so long ago.")
    return moment


def _open(url: str) -> Store:
    try:
        return open_store(url)
    except ValueError as error:
        raise Invalid(str(error)) from error


def _require_other(source: str | None, target: str) -> None:
    if source is not None and source.rstrip("/") == target.rstrip("/"):
        raise Invalid("A store cannot be copied into itself.", "Name another one.")


@contextlib.contextmanager
def _open_target(url: str | None) -> Iterator[Store]:
    """Yield the store of the URL, or one in a folder that is deleted afterwards."""
    if url is not None:
        yield _open(url)
        return
    with tempfile.TemporaryDirectory(prefix="perdure-drill-") as folder:
        yield FileStore(Path(folder))


def _progress(verb: str) -> Callable[[Copied], None]:
    show_progress = _show_progress(verb)
    return lambda copied: show_progress(copied.conversations + copied.discussions)


def _show_progress(verb: str) -> Callable[[int], None]:
    def report(number: int) -> None:
        if is_terminal(sys.stderr):
            from perdure.cli.consoles import stderr

            stderr.print(f"{verb} {count(number, 'log')}", end="\r", style="dim")

    return report


def _fields(copied: Copied) -> dict[str, Any]:
    fields = asdict(copied)
    fields["newest"] = f"{copied.newest}Z" if copied.newest else None
    return fields


def _describe(copied: Copied) -> str:
    return (
        f"{count(copied.conversations, 'conversation')} and "
        f"{count(copied.discussions, 'discussion')} of {count(copied.users, 'user')}"
    )


def _describe_drill(result: drills.Drill, moment: datetime, seconds: float) -> Iterator[str]:
    restored = result.restored
    events = count(restored.events, "event")
    at = f"{moment:%Y-%m-%d %H:%M:%S} UTC"
    yield f"Restored, as of {at}: {_describe(restored)}, {events}, in {seconds:.1f} s."
    if restored.newest:
        newest = restored.newest.replace("T", " ").partition(".")[0]
        yield f"The newest event is of {newest} UTC."
    if restored.later:
        yield f"{count(restored.later, 'log')} went on afterwards: that was left out."
    for damage in result.damages:
        yield f"damaged: {damage['user']}/{damage['id']}: {damage['key']}: {damage['detail']}"
    verdict = f"{count(len(result.damages), 'damage')} found" if result.damages else "no damage"
    yield f"Verified {count(result.verified, 'log')}: {verdict}."
    if result.to_reopen:
        number = count(result.to_reopen, "conversation")
        yield f"{number} would go on at once: the middle of a turn was restored."


def _next_step(result: drills.Drill, into: str | None) -> str:
    if not result.verified:
        return "There was nothing at that time. `--at now` takes what is there now."
    if into is None:
        return "It was a drill: the copy is deleted. `--into STORE` keeps it."
    return f"To go on from it: PERDURE_STORE={into}, new workers, `perdure reopen --all`."
