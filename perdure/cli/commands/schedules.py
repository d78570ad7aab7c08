"""The commands of schedules."""

from typing import Any, cast, get_args

from perdure.api.schedules import Overlap, Schedule
from perdure.cli.arguments import read_text
from perdure.cli.declarations import schedules as declarations
from perdure.cli.environment import Environment, connect_gateway, connect_servers, find_environment
from perdure.cli.moments import parse_span
from perdure.cli.output import escape_controls, note, print_list, show, show_result
from perdure.cli.script_server import open_agent
from perdure.client.schedules.protocol import ScheduleClient, build_definition
from perdure.errors import Invalid

SHOWN_TIMES = 5
MAX_TEXT_CHARS = 60


async def create(options: declarations.Create) -> None:
    if options.script is not None:
        raise Invalid(
            "A script is served by this command, which would be gone.",
            f"Have the worker play it: --model scripted:{options.script.absolute()}",
        )
    definition = build_definition(
        read_text(options.task),
        cron=tuple(options.cron or ()),
        every=parse_span(options.every) if options.every else None,
        time_zone=options.time_zone,
        jitter=parse_span(options.jitter) if options.jitter else 0,
        overlap=options.overlap,
        catch_up=parse_span(options.catch_up),
        conversation_id=options.conversation,
    )
    environment = await find_environment()
    schedules = await _connect(environment)
    if options.conversation is not None:
        made = await schedules.create(options.name, definition)
    else:
        async with open_agent(options, environment) as agent:
            made = await schedules.create(options.name, definition, agent)
    show_result(_fields(made), options.output, made.name)
    if options.output == "text":
        note(f"It begins next on {_format_moment(made.next_times[0])}.")


async def list_schedules(options: declarations.List) -> None:
    schedules = await (await _connect()).list_schedules()
    with print_list(_fields, _show_line, options.output) as print_item:
        for schedule in schedules:
            print_item(schedule)
    if not schedules and options.output == "text":
        note("There are no schedules: `perdure schedule create` makes one.")


async def show_schedule(options: declarations.Show) -> None:
    schedule = await (await _connect()).get(options.name)
    lines = [escape_controls(line) for line in _describe(schedule)]
    show_result(_fields(schedule), options.output, *lines)


async def pause(options: declarations.Pause) -> None:
    await (await _connect()).pause(options.name, options.note)
    remark = f"It is paused; `perdure schedule resume {options.name}` continues it."
    show_result({"name": options.name, "paused": True}, options.output, remark=remark)


async def resume(options: declarations.Resume) -> None:
    schedules = await _connect()
    await schedules.resume(options.name, options.note)
    following = (await schedules.get(options.name)).next_times
    remark = f"It begins next on {_format_moment(following[0])}." if following else ""
    show_result({"name": options.name, "paused": False}, options.output, remark=remark)


async def trigger(options: declarations.Trigger) -> None:
    await (await _connect()).trigger(options.name)
    remark = (
        "It begins, unless --overlap holds it back: "
        f"`perdure schedule show {options.name}` has the conversation."
    )
    show_result({"name": options.name}, options.output, remark=remark)


async def backfill(options: declarations.Backfill) -> None:
    if options.overlap not in get_args(Overlap):
        policies = ", ".join(get_args(Overlap))
        raise Invalid(f"{options.overlap!r} is no policy.", f"Use one of {policies}.")
    overlap = cast("Overlap", options.overlap)
    await (await _connect()).backfill(options.name, options.since, options.until, overlap)
    remark = f"They begin; `perdure schedule show {options.name}` has their conversations."
    show_result({"name": options.name}, options.output, remark=remark)


async def delete(options: declarations.Delete) -> None:
    await (await _connect()).delete(options.name)
    show_result({"name": options.name, "deleted": True}, options.output, remark="It is deleted.")


async def _connect(environment: Environment | None = None) -> ScheduleClient:
    """Connect to the schedules of the user, of the gateway if one is set."""
    settings = (environment or await find_environment()).settings
    if settings.gateway is not None:
        from perdure.client.schedules.http_schedules import HttpSchedules

        return HttpSchedules(await connect_gateway(settings))
    from perdure.client.schedules.schedules import Schedules  # slow

    return Schedules(await connect_servers(settings))


def _fields(schedule: Schedule) -> dict[str, Any]:
    return schedule.model_dump(mode="json", exclude_none=True)


def _show_line(schedule: Schedule) -> None:
    following = _format_moment(schedule.next_times[0]) if schedule.next_times else ""
    when = "paused" if schedule.paused else following
    text = " ".join(schedule.definition.text.split())
    short = text if len(text) <= MAX_TEXT_CHARS else f"{text[: MAX_TEXT_CHARS - 1]}…"
    show(escape_controls(f"{schedule.name:<24}  {when:<23}  {short}"))


def _describe(schedule: Schedule) -> list[str]:
    definition = schedule.definition
    times = [f"{cron} ({definition.time_zone})" for cron in definition.cron]
    if definition.every is not None:
        times.append(f"every {definition.every:g} s")
    state = "paused" if schedule.paused else "active"
    begins = (
        f"sends to {definition.conversation_id}"
        if definition.conversation_id
        else f"begins conversations of {schedule.agent}"
    )
    return [
        f"{schedule.name}: {state}{f' ({schedule.note})' if schedule.note else ''}, {begins}",
        f"task: {definition.text}",
        f"times: {', '.join(times)}; while a turn goes on: {definition.overlap}",
        f"began {schedule.firing_count} times; left out: {schedule.skipped_count} by overlap, "
        f"{schedule.missed_count} as too late",
        f"next: {', '.join(map(_format_moment, schedule.next_times[:SHOWN_TIMES]))}",
        *(
            f"{_format_moment(it.started_at)}  {it.conversation_id}"
            for it in schedule.recent_firings
        ),
    ]


def _format_moment(moment: str) -> str:
    return f"{moment[:19].replace('T', ' ')} UTC"
