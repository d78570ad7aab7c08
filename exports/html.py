"""One page that needs nothing else: no script, no other host, images within it.

All of it is escaped; where a browser would still obey something, the page's own policy forbids it.
"""

from collections.abc import Iterable, Iterator
from html import escape as escaped
from typing import Any

from events.content import Content, ImageContent, ToolDefinition, text_of
from events.entry import Entry
from events.messages import MessageEvent, SystemPromptEvent
from events.tools import ActionEvent
from exports.arguments import arguments_text
from exports.format import About, document
from exports.images import SHOWABLE, is_inline, media_type, named
from exports.notes import QUIET, note
from exports.totals import Totals
from exports.turns import Call, Turn, reasoning_of, said_in, turns

LONG = 30
"""Lines of a text that are shown at once; one with more has to be unfolded."""

CONTROLS = dict.fromkeys((*range(9), 11, 12, *range(14, 32), *range(127, 160)), "�")

STYLE = """
:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif; }
body { max-width: 52rem; margin: 0 auto; padding: 1rem; }
h1 { font-size: 1.3rem; overflow-wrap: anywhere; }
article { margin: 1rem 0; padding-left: .8rem; border-left: .25rem solid #8888; }
article.user { border-color: #2a8a4a; }
article.agent { border-color: #2a6aba; }
article.failed, section.failed { border-color: #c33; }
section { margin: .5rem 0; padding-left: .6rem; border-left: .15rem solid #8888; }
header, footer, .note, small, summary { opacity: .8; font-size: .875rem; }
pre { white-space: pre-wrap; overflow-wrap: anywhere; margin: .3rem 0; unicode-bidi: plaintext; }
pre.words { font-family: inherit; }
img { max-width: 100%; height: auto; }
"""

HEAD = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy"
 content="default-src 'none'; img-src data:; style-src 'unsafe-inline'">
<meta name="referrer" content="no-referrer">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<header><h1>{title}</h1>{facts}</header>
<main>
"""


def write(about: About, entries: Iterable[Entry]) -> Iterator[bytes]:
    totals = Totals()
    yield _encoded(_head(about))
    for turn in turns(totals.watch(entries)):
        if shown := _shown(turn):
            yield _encoded(shown)
    yield _encoded(_foot(totals))


def _encoded(html: str) -> bytes:
    return html.encode(errors="replace")


def _head(about: About) -> str:
    title = about.title or f"Conversation {about.conversation_id}"
    status = f"{about.status} ({about.reason})" if about.reason else about.status
    facts = [about.conversation_id, status, about.model or ""]
    told = " · ".join(filter(None, map(_escaped, facts)))
    return HEAD.format(title=_escaped(title), style=STYLE, facts=told)


def _foot(totals: Totals) -> str:
    spent = totals.all
    tokens = f"{spent.prompt_tokens:,} + {spent.completion_tokens:,} tokens"
    lines = [f"<p>{tokens} · ${spent.cost:.4f} · {spent.latency:.1f} s of models</p>"]
    if totals.lost:
        lines.insert(0, f"<p><strong>{_escaped(totals.lost)}</strong></p>")
    return f"</main>\n<footer>{''.join(lines)}</footer>\n</body>\n</html>\n"


def _shown(turn: Turn) -> str:
    match turn.event:
        case SystemPromptEvent() as event:
            return _article(turn, "system", "system", _prompt(event))
        case MessageEvent() as event:
            who = "agent" if event.source == "agent" else event.source
            name = f"{who} ({event.sender})" if event.sender else who
            return _article(turn, who, name, _thought(event) + _parts(said_in(turn)))
        case ActionEvent() as event:
            calls = "".join(map(_call, turn.calls))
            return _article(turn, "agent", "agent", _thought(event) + _parts(event.thought) + calls)
        case event if not (said := note(event)):
            return ""
        case event:
            body = _folded(event.kind, said) if isinstance(event, QUIET) else _text(said)
            return _article(turn, "note", event.kind, body)


def _article(turn: Turn, kind: str, who: str, body: str) -> str:
    at = turn.event.timestamp.replace("T", " ")[:19]
    seq = turn.entry.seq
    head = f"<small><b>{_escaped(who)}</b> · {_escaped(at)} · {seq}</small>"
    return f'<article class="{kind}" id="e{seq}">{head}{body}</article>\n'


def _prompt(event: SystemPromptEvent) -> str:
    context = [event.dynamic_context] if event.dynamic_context else []
    tools = "".join(map(_tool, event.tools))
    return _folded("prompt", text_of((event.system_prompt, *context))) + tools


def _tool(tool: ToolDefinition) -> str:
    return _folded(f"tool {tool.name}", tool.description)


def _thought(event: Any) -> str:
    reasoning = reasoning_of(event)
    return _folded("thought", reasoning) if reasoning else ""


def _call(call: Call) -> str:
    asked = f"<b>{_escaped(call.action.tool_call.name)}</b>"
    risk = call.action.security_risk
    told = "" if risk == "UNKNOWN" else f" · risk {risk}"
    body = _text(arguments_text(call.action), "code") + _parts(call.result, "code")
    state = ' class="failed"' if call.failed else ""
    return f"<section{state}><small>{asked}{told}</small>{body}</section>"


def _parts(parts: Iterable[Content], kind: str = "words") -> str:
    return "".join(_part(part, kind) for part in parts)


def _part(part: Content, kind: str) -> str:
    if isinstance(part, ImageContent):
        return "".join(map(_image, part.image_urls))
    return _text(part.text, kind)


def _image(url: str) -> str:
    """Within the page; one that lies on another host is named, for the page asks nobody."""
    if is_inline(url) and media_type(url) in SHOWABLE:
        return f'<img alt="" src="{_escaped(url)}">'
    return _text(named(url))


def _text(text: str, kind: str = "words") -> str:
    lines = text.count("\n") + 1
    if lines > LONG:
        return _folded(f"{lines} lines", text, kind)
    return f'<pre class="{kind}">{_escaped(text)}</pre>' if text else ""


def _folded(name: str, text: str, kind: str = "words") -> str:
    head = f"<summary>{_escaped(name)}</summary>"
    return f'<details>{head}<pre class="{kind}">{_escaped(text)}</pre></details>'


def _escaped(text: str) -> str:
    return escaped(text.translate(CONTROLS))


HTML = document("html", ".html", "one page for people, that needs nothing else", write)
