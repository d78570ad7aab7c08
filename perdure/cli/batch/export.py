"""`perdure batch export`: export the conversations of a batch."""

from perdure.cli.commands.export import export_all, find_format
from perdure.cli.environment import open_batch
from perdure.cli.export_selection import select_batch
from perdure.errors import Invalid
from perdure.exports.inspect_log import INSPECT


async def execute(name: str, format_name: str, output: str, every: bool) -> int:
    format = find_format(format_name)
    if every and format is INSPECT:
        raise Invalid(
            "An Inspect log has one attempt for each epoch of a sample.",
            "Leave out --all-attempts: the errors of earlier attempts are in it.",
        )
    return await export_all([await select_batch(await open_batch(name), every)], format, output)
