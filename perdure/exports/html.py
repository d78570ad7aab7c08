"""A self-contained page: no script, no other host, images embedded.

Markdown is rendered and calls are folded, each under a line that says what it did. All other text
is escaped; if a browser still found something to run, the page's own policy forbids it.
"""

import difflib
import json
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from perdure.events.actions import (
    FileEditorAction,
    FinishAction,
    IPythonRunCellAction,
    TaskTrackerAction,
    TerminalAction,
    ThinkAction,
)
from perdure.events.content import Content, TextContent, join_text
from perdure.events.custom import CustomAction
from perdure.events.entry import Entry
from perdure.events.messages import MessageEvent, SystemPromptEvent
from perdure.events.tools import ActionEvent
from perdure.events.usage import describe_cost
from perdure.exports.content import SAFE_MEDIA_TYPES, describe_image, is_inline, media_type
from perdure.exports.format import ExportMetadata, single_file_format
from perdure.exports.markdown import render_markdown
from perdure.exports.notes import HOUSEKEEPING_EVENTS, describe_event
from perdure.exports.report.formatting import shorten
from perdure.exports.report.page import render
from perdure.exports.totals import Totals
from perdure.exports.turns import Call, Turn, turns

MAX_UNFOLDED_LINES = 30
"""Lines of a text that are shown at once; a longer one has to be unfolded."""

MAX_HEADLINE_CHARS = 110

TASK_MARKS = {"todo": "☐", "in_progress": "▶", "done": "☑"}


class CallView(NamedTuple):
    """A call on the page: its headline, and its arguments as lines, each with a CSS class."""

    call: Call
    headline: str
    lines: Sequence[tuple[str, str]]


class Article(NamedTuple):
    """A turn on the page; `folded` are names and texts above its content."""

    turn: Turn
    kind: str
    author: str
    folded: tuple[tuple[str, str], ...] = ()
    parts: tuple[Content, ...] = ()
    calls: tuple[CallView, ...] = ()


def write(about: ExportMetadata, entries: Iterable[Entry]) -> Iterator[bytes]:
    totals = Totals()
    return render(
        "conversation.html",
        about=about,
        articles=filter(None, map(_article, turns(totals.count(entries)))),
        totals=totals,
        max_lines=MAX_UNFOLDED_LINES,
        describe_image=describe_image,
        is_embeddable=_is_embeddable,
        render_markdown=render_markdown,
        describe_cost=describe_cost,
    )


def _article(turn: Turn) -> Article | None:
    thought = (("Reasoning", turn.reasoning),) if turn.reasoning else ()
    match turn.event:
        case SystemPromptEvent() as event:
            tools = "\n\n".join(f"{tool.name}: {tool.description}" for tool in event.tools)
            prompt = ("System prompt", join_text(turn.content))
            return Article(turn, "system", "System", (prompt, ("Tools", tools)))
        case MessageEvent() as event:
            remark = "cut off at its length limit" if event.truncated else event.sender
            name = f"{event.source} ({remark})" if remark else event.source
            return Article(turn, event.source, name.capitalize(), thought, turn.content)
        case ActionEvent():
            return _action_article(turn, thought)
        case event if isinstance(event, HOUSEKEEPING_EVENTS) or not (text := describe_event(event)):
            return None
        case event:
            return Article(turn, "note", "", parts=(TextContent(text=text),))


def _action_article(turn: Turn, thought: tuple[tuple[str, str], ...]) -> Article:
    """Show the report of `finish` as the agent's words, and every other call folded."""
    reports = [
        TextContent(text=call.action.action.message)
        for call in turn.calls
        if isinstance(call.action.action, FinishAction)
    ]
    others = (call for call in turn.calls if not isinstance(call.action.action, FinishAction))
    calls = tuple(map(_view_call, others))
    return Article(turn, "agent", "Agent", thought, (*turn.content, *reports), calls)


def _view_call(call: Call) -> CallView:
    match call.action.action:
        case TerminalAction(command=command):
            headline, lines = command, _plain_lines(command)
        case IPythonRunCellAction(code=code):
            headline, lines = code, _plain_lines(code)
        case FileEditorAction(command=command, path=path) as edit:
            headline, lines = f"{command} {path}", _diff_lines(edit)
        case ThinkAction(thought=thought):
            headline, lines = thought, _plain_lines(thought)
        case TaskTrackerAction(task_list=tasks):
            items = [f"{TASK_MARKS[task.status]} {task.title}" for task in tasks]
            headline, lines = f"{len(items)} tasks", _plain_lines("\n".join(items))
        case CustomAction() as action:
            text = action.describe(call.action.tool_name)
            headline, lines = text.removeprefix(call.action.tool_name), _plain_lines(text)
        case _:
            headline, lines = call.arguments_text, _plain_lines(_indent_arguments(call))
    return CallView(call, shorten(headline, MAX_HEADLINE_CHARS), lines)


def _plain_lines(text: str) -> list[tuple[str, str]]:
    return [("", line) for line in text.split("\n")]


def _diff_lines(edit: FileEditorAction) -> list[tuple[str, str]]:
    """List the lines that the edit takes away and adds."""
    before = (edit.old_str or "").splitlines()
    after = (edit.new_str if edit.file_text is None else edit.file_text) or ""
    classes = {"-": "removed", "+": "added", " ": ""}
    diff = difflib.ndiff(before, after.splitlines())
    return [(classes[line[0]], line) for line in diff if line[0] in classes]


def _indent_arguments(call: Call) -> str:
    if call.valid_arguments is None and not call.arguments:
        return call.action.tool_call.arguments  # as the model wrote what nobody can parse
    return json.dumps(call.arguments, indent=2, ensure_ascii=False)


def _is_embeddable(url: str) -> bool:
    """Check whether the page may show the image: it sends no requests for one elsewhere."""
    return is_inline(url) and media_type(url) in SAFE_MEDIA_TYPES


HTML = single_file_format("html", ".html", "one page for people, that needs nothing else", write)
