"""`perdure batch report`: a page about a batch."""

import os
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated
from urllib.parse import quote, urlsplit

import typer

from cli.failures import OK
from cli.output import Format as Printed
from cli.output import note
from cli.performing import command_app, perform
from cli.stack import batch_of
from cli.writing import opened
from client.errors import Invalid, NotFound
from evaluation.report.batch import page
from evaluation.report.gathered import About, Gathered
from storage.counted import counted

app = command_app()


@dataclass(frozen=True)
class Links:
    """Where the conversations of a batch can be seen."""

    ui: str | None
    namespace: str | None
    conversations: Path | None


@app.command("report")
def command(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The batch's name.")],
    output: Annotated[
        str | None,
        typer.Option("--output", metavar="FILE", help="NAME.html by default; - is stdout."),
    ] = None,
    ui: Annotated[
        str | None,
        typer.Option("--ui", metavar="URL", help="Temporal's page, for links to the workflows."),
    ] = None,
    namespace: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Temporal's, for these links; as configured by default."),
    ] = None,
    conversations: Annotated[
        Path | None,
        typer.Option(
            "--conversations",
            metavar="FOLDER",
            help="Link to the pages that `perdure batch export NAME --format html` put there.",
        ),
    ] = None,
) -> None:
    """Write a page about a batch: scores, plots, failures, cost and every sample that went wrong.

    Only the store is needed: what runs at the moment counts as missing. The page is one file that
    asks no other host, and shows at most 2,000 samples, those that went wrong first.
    """
    links = Links(ui, namespace, conversations)
    perform(_report(name, output or f"{name}.html", links), Printed.text)


async def _report(name: str, output: str, links: Links) -> int:
    if links.ui is not None:
        _check(links.ui)
    folder = await batch_of(name)
    kept = await folder.kept()
    if kept is None:
        raise NotFound(f"There is no batch {name!r}.")
    about = About(
        spec=kept.spec,
        expected=kept.expected,
        ui=links.ui,
        namespace=links.namespace or os.environ.get("TEMPORAL_NAMESPACE") or "default",
        conversations=_way(output, links.conversations),
        made=now(),
    )
    gathered = Gathered(kept.spec)
    async for result in counted(folder, kept):
        gathered.add(result)
    with opened(output) as file:
        file.writelines(page(about, gathered))
    if output != "-":
        note(f"Written to {output}.")
    return OK


def _check(ui: str) -> None:
    """Raises Invalid where it is no address of a page."""
    try:
        parts = urlsplit(ui)
    except ValueError as error:
        raise Invalid(f"{ui!r} is no address: {error}.") from error
    if parts.scheme not in ("http", "https") or not parts.netloc or parts.query or parts.fragment:
        raise Invalid(
            f"{ui!r} is no address of Temporal's page.", "Write one such as http://localhost:8233."
        )


def _way(output: str, conversations: Path | None) -> str | None:
    """From the page to the folder, as a link. Raises Invalid where there is no such folder."""
    if conversations is None:
        return None
    if not conversations.is_dir():
        raise Invalid(
            f"There is no folder {conversations}.",
            "Make it with `perdure batch export NAME --format html --output FOLDER`.",
        )
    page = Path(output if output != "-" else "page").resolve().parent
    way = Path(os.path.relpath(conversations.resolve(), page)).as_posix()
    # A name that begins like `data:` is no folder to a browser.
    return quote(way if way.startswith(".") else f"./{way}", safe="/")


def now() -> str:
    return f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC"
