"""`perdure batch report`: write an HTML page about a batch."""

import os
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import quote, urlsplit

from perdure.cli.declarations.batches import Report
from perdure.cli.environment import open_batch
from perdure.cli.output import note, open_output
from perdure.errors import Invalid
from perdure.exports.report.batch import page
from perdure.exports.report.collect import BatchDescription, Collected
from perdure.operations.error_reports import EXIT_OK
from perdure.storage.batches import read_current_results


async def report(options: Report) -> int:
    path = options.path or f"{options.name}.html"
    if options.ui is not None:
        _check_ui_address(options.ui)
    folder, record = await open_batch(options.name)
    about = BatchDescription(
        spec=record.spec,
        expected=record.expected_attempts,
        ui=options.ui,
        namespace=options.namespace or os.environ.get("TEMPORAL_NAMESPACE") or "default",
        conversations=_relative_link(path, options.conversations),
        made=format_now(),
    )
    results = Collected(record.spec)
    async for result in read_current_results(folder, record):
        results.add(result)
    with open_output(path) as file:
        file.writelines(page(about, results))
    if path != "-":
        note(f"Written to {path}.")
    return EXIT_OK


def _check_ui_address(ui: str) -> None:
    """Raises Invalid unless `ui` is an http address."""
    try:
        parts = urlsplit(ui)
    except ValueError as error:
        raise Invalid(f"{ui!r} is no address: {error}.") from error
    if parts.scheme not in ("http", "https") or not parts.netloc or parts.query or parts.fragment:
        raise Invalid(
            f"{ui!r} is no address of Temporal's page.", "Write one such as http://localhost:8233."
        )


def _relative_link(output: str, conversations: Path | None) -> str | None:
    """Make the link from the page to the folder. Raises Invalid where there is no such folder."""
    if conversations is None:
        return None
    if not conversations.is_dir():
        raise Invalid(
            f"There is no folder {conversations}.",
            "Make it with `perdure batch export NAME --format html --output FOLDER`.",
        )
    page = Path(output if output != "-" else "page").resolve().parent
    link = Path(os.path.relpath(conversations.resolve(), page)).as_posix()
    # Without ./ a browser takes a folder such as `data:x` for a URL with a scheme.
    return quote(link if link.startswith(".") else f"./{link}", safe="/")


def format_now() -> str:
    return f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC"
