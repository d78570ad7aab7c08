"""An event for people, as a renderable of rich."""

from rich.text import Text

from perdure.cli.output import escape_controls
from perdure.cli.rendering.events import STYLES, TRUNCATED, describe_event, is_failure
from perdure.events.event import AnyEvent
from perdure.events.messages import MessageEvent


def visualize(event: AnyEvent) -> Text:
    """Render an event, whole and with its time and its actor, as `perdure show --full` does.

    `rich.print(visualize(event))` prints it; `.plain` is the text without styles. Control
    characters are shown as escapes.
    """
    source, text = describe_event(event, full=True)
    style = STYLES.get(source, "red" if is_failure(event) else "")
    rendered = Text.assemble(
        (f"{event.timestamp[11:19]}  {escape_controls(source)}\n", "dim"),
        (escape_controls(text), style),
    )
    if isinstance(event, MessageEvent) and event.truncated:
        rendered.append(f"\n{TRUNCATED}", "yellow")
    return rendered
