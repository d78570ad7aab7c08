"""Pages of one file, rendered from Jinja2 templates; every value on them is escaped text.

A browser runs and uses only the script and the style whose hashes the page's own policy names.
"""

import base64
import hashlib
from collections.abc import Iterator
from inspect import getmembers, isfunction
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from perdure.exports.report import formatting
from perdure.exports.report.plots import bar_scale, histogram_plot

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
_FUNCTIONS = dict(getmembers(formatting, isfunction))
_TEMPLATES.filters |= _FUNCTIONS
_STYLE, _SCRIPT = (
    _TEMPLATES.loader.get_source(_TEMPLATES, name)[0]  # type: ignore[union-attr] # it is set above
    for name in ("style.css", "script.js")
)
_TEMPLATES.globals |= {
    **_FUNCTIONS,
    "bar_scale": bar_scale,
    "histogram_plot": histogram_plot,
    "nothing": formatting.NOTHING,
    "style": Markup(_STYLE),
    "script": Markup(_SCRIPT),
    "policy": (
        f"default-src 'none'; style-src 'sha256-{_hash(_STYLE)}'; "
        f"script-src 'sha256-{_hash(_SCRIPT)}'; base-uri 'none'; form-action 'none'"
    ),
}
