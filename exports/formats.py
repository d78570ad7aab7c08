"""Every format there is. A new one is a file of its own and a line here."""

from exports.atif import ATIF
from exports.format import Format
from exports.html import HTML
from exports.inspect_log import INSPECT
from exports.mcpbench import MCPBENCH
from exports.openai_chat import OPENAI
from exports.openhands_folder import OPENHANDS
from exports.raw import RAW
from exports.results import RESULTS

FORMATS: tuple[Format, ...] = (
    RESULTS,
    MCPBENCH,
    OPENAI,
    ATIF,
    OPENHANDS,
    INSPECT,
    RAW,
    HTML,
)
