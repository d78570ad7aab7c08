"""The `perdure schedule` commands."""

from perdure.cli.declarations.agent_fields import AgentOptions
from perdure.cli.options import OutputOptions, argument, option
from perdure.cli.runner import command, new_named_group

app = new_named_group("Begin conversations at times of a calendar, or send to one that goes on.")

TIMES = "Times"
"""The heading of the options that say when, in a help."""


class ScheduleOptions(OutputOptions):
    """The options of a command about one schedule, whose agents are run by workers alone."""

    runs_user_code = False
    through_gateway = "works"

    name: str = argument("NAME", "The schedule's name, which `perdure schedule ls` shows.")


class NoteOptions(ScheduleOptions):
    """The options of a command that pauses or resumes a schedule."""

    note: str = option("Why, for whoever looks at the schedule.", default="", metavar="TEXT")


@command(app, "commands.schedules:create")
class Create(AgentOptions, OutputOptions):
    """Create a schedule: at each of its times an agent begins the task, in a new conversation.

    With --conversation the task is sent as a message to a conversation that goes on. The agent of
    new conversations is as the options say now: later changes of a named agent do not change it.
    """

    through_gateway = "works"

    name: str = argument("NAME", "The name: letters, digits and '.', '_', '-'.")
    task: str = argument("TASK", "The task, or the message; - reads it from stdin.")
    cron: list[str] | None = option(
        "Minute, hour, day, month and weekday, as in crontab: '0 8 * * 1-5'; may be repeated.",
        metavar="CRON",
        panel=TIMES,
    )
    every: str | None = option(
        "The time between two beginnings: 90s, 15m, 2h or 1d.", metavar="SPAN", panel=TIMES
    )
    time_zone: str = option(
        "The time zone of --cron, such as Europe/Oslo.",
        "--tz",
        default="UTC",
        metavar="NAME",
        panel=TIMES,
    )
    jitter: str | None = option(
        "Delay each beginning at random, by so much at most.", metavar="SPAN", panel=TIMES
    )
    overlap: str = option(
        "What to do while the turn before goes on: skip, buffer_one, buffer_all, cancel_other or "
        "allow_all.",
        default="skip",
        metavar="POLICY",
        panel=TIMES,
    )
    catch_up: str = option(
        "How late a beginning may be after an outage.", default="1d", metavar="SPAN", panel=TIMES
    )
    conversation: str | None = option(
        "Send the task to this conversation.", metavar="ID", panel=TIMES
    )


@command(app, "commands.schedules:list_schedules", "ls")
class List(OutputOptions):
    """List the schedules, with their next times."""

    runs_user_code = False
    through_gateway = "works"


@command(app, "commands.schedules:show_schedule")
class Show(ScheduleOptions):
    """Show a schedule: its times, the next ones, and the conversations of the last ones."""


@command(app, "commands.schedules:pause")
class Pause(NoteOptions):
    """Let no time of a schedule begin anything until it is resumed."""


@command(app, "commands.schedules:resume")
class Resume(NoteOptions):
    """Let the times to come begin turns again."""


@command(app, "commands.schedules:trigger")
class Trigger(ScheduleOptions):
    """Begin a turn now, besides the times of the schedule."""


@command(app, "commands.schedules:backfill")
class Backfill(ScheduleOptions):
    """Begin now what the times between two moments would have begun."""

    since: str = option("The first moment, such as 2030-01-31T18:00.", default=..., metavar="TIME")
    until: str = option("The last moment, UTC without a zone.", default=..., metavar="TIME")
    overlap: str = option(
        "What to do while a turn goes on; see `create`.", default="buffer_all", metavar="POLICY"
    )


@command(app, "commands.schedules:delete")
class Delete(ScheduleOptions):
    """Delete a schedule; conversations that it has begun go on."""
