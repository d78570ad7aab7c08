"""Pages of one file, rendered from Jinja2 templates; every value on them is escaped text.

Jinja2 is the template engine that most Python developers know; its autoescape is on. A browser runs
and uses only the script and the style whose hashes the page's own policy names.
"""

import base64
import hashlib
from collections.abc import Iterator
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from perdure.exports.report import formatting

CONTROL_CHARACTERS = dict.fromkeys((*range(9), 11, 12, *range(14, 32), *range(127, 160)), "�")


def render(template: str, **values: Any) -> Iterator[bytes]:
    """Render a template piece by piece; half of a surrogate pair becomes a question mark."""
    pieces = _TEMPLATES.get_template(template).generate(**values)
    return (piece.encode(errors="replace") for piece in pieces)


def _without_controls(value: Any) -> Any:
    return value.translate(CONTROL_CHARACTERS) if isinstance(value, str) else value


def _hash(content: str) -> str:
    return base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()


_TEMPLATES = Environment(
    loader=PackageLoader("perdure.exports.report"),
    autoescape=True,
    extensions=["jinja2.ext.do"],
    undefined=StrictUndefined,
    finalize=_without_controls,
    trim_blocks=True,
    lstrip_blocks=True,
)
_FUNCTIONS = {
    name: getattr(formatting, name)
    for name in (
        "count",
        "duration",
        "interval",
        "metric_name",
        "money",
        "p_value",
        "score",
        "share",
    )
}
_TEMPLATES.filters |= _FUNCTIONS | {"shorten": formatting.shorten}
_TEMPLATES.globals |= _FUNCTIONS | {"nothing": formatting.NOTHING}
_STYLE, _SCRIPT = (
    _TEMPLATES.loader.get_source(_TEMPLATES, name)[0]  # type: ignore[union-attr] # it is set above
    for name in ("style.css", "script.js")
)
_TEMPLATES.globals |= {
    "style": Markup(_STYLE),
    "script": Markup(_SCRIPT),
    "policy": (
        f"default-src 'none'; style-src 'sha256-{_hash(_STYLE)}'; "
        f"script-src 'sha256-{_hash(_SCRIPT)}'; base-uri 'none'; form-action 'none'"
    ),
}
