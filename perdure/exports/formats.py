"""The list of all formats. A new one is a file of its own and a line here."""

from perdure.exports.atif import ATIF
from perdure.exports.format import Format
from perdure.exports.html import HTML
from perdure.exports.inspect_log import INSPECT
from perdure.exports.mcpbench import MCPBENCH, MCPBENCH_STATISTICS
from perdure.exports.openai_chat import OPENAI
from perdure.exports.openhands import OPENHANDS
from perdure.exports.raw import RAW
from perdure.exports.results import RESULTS
from perdure.references import BadReference, find_entry_points, load_named

FORMATS: tuple[Format, ...] = (
    RESULTS,
    MCPBENCH,
    MCPBENCH_STATISTICS,
    OPENAI,
    ATIF,
    OPENHANDS,
    INSPECT,
    RAW,
    HTML,
)

FORMAT_GROUP = "perdure.exporters"
"""The entry points of formats of other packages."""


def list_format_names() -> list[str]:
    return [*(format.name for format in FORMATS), *find_entry_points(FORMAT_GROUP)]


def find_format(name: str) -> Format:
    """Find a format by name, entry point or `module:attribute`. Raises BadReference."""
    ours = (format for format in FORMATS if format.name == name)
    builtin = next(ours, None) or load_named(FORMAT_GROUP, name)
    if not isinstance(builtin, Format):
        raise BadReference(f"{name!r} leads to a {type(builtin).__name__}, and it must be a Format")
    return builtin
