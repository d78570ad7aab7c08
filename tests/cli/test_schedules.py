"""`perdure schedule`, as people type it."""

import asyncio
from uuid import uuid4

import pytest

from tests.cli.command import Perdure

pytestmark = pytest.mark.long

NEVER_SOON = ("--cron", "0 8 1 1 *")
MODEL = ("--model", "scripted:hello.json")


@pytest.fixture
def perdure(configured: Perdure) -> Perdure:
    """The command of a user of their own, with Temporal, a store and a worker."""
    return configured.with_env(PERDURE_USER=f"user-{uuid4()}")


async def test_a_schedule_is_created_shown_triggered_paused_and_deleted(perdure: Perdure) -> None:
    made = await perdure("schedule", "create", "greet", "Say hello.", *NEVER_SOON, *MODEL)
    assert (made.code, made.out) == (0, "greet\n"), made.err
    assert "It begins next on " in made.err
    assert (await perdure("schedule", "trigger", "greet")).code == 0
    async with asyncio.timeout(60):
        while not (shown := await perdure("schedule", "show", "greet", "-o", "json")).json[
            "recent_firings"
        ]:
            await asyncio.sleep(0.2)
    assert shown.json["definition"]["cron"] == ["0 8 1 1 *"]
    text = (await perdure("schedule", "show", "greet")).out
    assert "greet: active, begins conversations of scripted:" in text
    assert shown.json["recent_firings"][0]["conversation_id"] in text
    paused = await perdure("schedule", "pause", "greet", "--note", "holidays")
    assert "perdure schedule resume greet" in paused.err
    async with asyncio.timeout(60):  # the list is a little behind
        while "paused" not in (await perdure("schedule", "ls")).out:
            await asyncio.sleep(0.2)
    assert "It begins next on " in (await perdure("schedule", "resume", "greet")).err
    filled = ("--since", "2026-01-01", "--until", "2026-01-01T12:00")
    assert (await perdure("schedule", "backfill", "greet", *filled)).code == 0
    assert (await perdure("schedule", "delete", "greet")).code == 0
    assert (await perdure("schedule", "show", "greet")).code == 3


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (("create", "x", "Go.", *MODEL), 2, "give `cron` or `every`"),
        (("create", "x", "Go.", "--cron", "0 0 30 2 *", *MODEL), 2, "It never begins"),
        (("create", "x", "Go.", "--cron", "noon", *MODEL), 2, "Temporal refuses the schedule"),
        (("create", "x", "Go.", "--tz", "Mars", *NEVER_SOON, *MODEL), 2, "There is no time zone"),
        (("create", "x", "Go.", "--every", "often", *MODEL), 2, "'often' is no span of time"),
        (("create", "x", "Go.", "--overlap", "no", *NEVER_SOON, *MODEL), 2, "overlap: "),
        (("create", "a:b", "Go.", *NEVER_SOON, *MODEL), 2, "no name of a schedule"),
        (
            ("create", "x", "Go.", "--conversation", str(uuid4()), *NEVER_SOON),
            3,
            "There is no conversation",
        ),
        (("show", "absent"), 3, "There is no schedule absent"),
        (
            ("backfill", "absent", "--since", "then", "--until", "now"),
            2,
            "'then' is no date and time",
        ),
    ],
)
async def test_what_is_no_schedule_is_refused_with_a_sentence(
    perdure: Perdure, arguments: tuple[str, ...], code: int, sentence: str
) -> None:
    refused = await perdure("schedule", *arguments)
    assert (refused.code, sentence in refused.err) == (code, True), refused.err
