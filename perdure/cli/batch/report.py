"""`perdure batch report`: write an HTML page about a batch."""

import os
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import quote, urlsplit

from perdure.cli.environment import open_batch
from perdure.cli.output import note
from perdure.cli.output_files import open_output
from perdure.errors import Invalid, NotFound
from perdure.exports.report.batch import page
from perdure.exports.report.collect import BatchDescription, Collected
from perdure.operations.error_reports import EXIT_OK
from perdure.storage.batches import BatchFolder, BatchRecord, read_current_results


@dataclass(frozen=True)
class Links:
    """The targets of a page's links to conversations."""

    ui: str | None
    namespace: str | None
    conversations: Path | None


async def execute(name: str, output: str, links: Links) -> int:
    if links.ui is not None:
        _check_ui_address(links.ui)
    folder, record = await load_batch(name)
    about = BatchDescription(
        spec=record.spec,
        expected=record.expected_attempts,
        ui=links.ui,
        namespace=links.namespace or os.environ.get("TEMPORAL_NAMESPACE") or "default",
        conversations=_relative_link(output, links.conversations),
        made=format_now(),
    )
    results = Collected(record.spec)
    async for result in read_current_results(folder, record):
        results.add(result)
    with open_output(output) as file:
        file.writelines(page(about, results))
    if output != "-":
        note(f"Written to {output}.")
    return EXIT_OK


async def load_batch(name: str) -> tuple[BatchFolder, BatchRecord]:
    """Load the record of a batch. Raises NotFound."""
    folder = await open_batch(name)
    record = await folder.load()
    if record is None:
        raise NotFound(f"There is no batch {name!r}.")
    return folder, record


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
