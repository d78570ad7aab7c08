"""`perdure batch retune`: change the concurrency and the limits of a batch."""

from pydantic import ValidationError

from perdure.cli.batch.control import connect_batches
from perdure.cli.batch.progress_view import progress_fields, progress_lines
from perdure.cli.options import Format
from perdure.cli.output import show, show_json
from perdure.errors import Invalid
from perdure.evaluation.messages import LimitsUpdate
from perdure.events.validation_errors import describe_errors


async def execute(name: str, changes: dict[str, float | None], output: Format) -> None:
    update = _parse_changes(changes)
    batches = await connect_batches()
    progress = await (await batches.get(name)).update_limits(update)
    if output is not Format.text:
        show_json(progress_fields(progress), output)
        return
    for line in progress_lines(progress):
        show(line)


def _parse_changes(changes: dict[str, float | None]) -> LimitsUpdate:
    values = {name: value for name, value in changes.items() if value is not None}
    if not values:
        raise Invalid(
            "Nothing is to change.", "Give one of --concurrency, --cost, --tokens and --time."
        )
    try:
        return LimitsUpdate.model_validate(values)
    except ValidationError as error:
        raise Invalid(f"The batch cannot be changed so: {describe_errors(error)}.") from error
