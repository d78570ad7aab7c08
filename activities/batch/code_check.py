"""Loading the code that a batch names, before its first sample is run."""

from asyncio import timeout as time_limit
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from perdure.activities.support.extensions import list_loaders
from perdure.evaluation.scorers.custom import CustomScorer
from perdure.references import BadReference, import_reference
from perdure.storage.batches import BatchRecord
from perdure.tools.catalog import load_tools
from perdure.tools.errors import CatalogError
from perdure.tools.threads import run_in_thread
from perdure.user_modules import USER_MODULES

MAX_LOADING_SECONDS = 300.0
"""The time in which the modules of a batch have to be imported."""

FILE_OPTION = "file"
"""The option of a batch that has the path of its file."""


async def find_code_problem(record: BatchRecord) -> str | None:
    """Load a batch's scorers, and its agent's code; return what is wrong, in sentences, or None.

    Nothing is called but the modules' own code.
    """
    try:
        async with time_limit(MAX_LOADING_SECONDS):
            return await run_in_thread(partial(_find_problem, record))
    except TimeoutError:
        seconds = f"{MAX_LOADING_SECONDS:g} seconds"
        return f"The modules that this batch names are not imported after {seconds}."


def _find_problem(record: BatchRecord) -> str | None:
    USER_MODULES.use_client_folder(record.spec.agent.code)
    USER_MODULES.refresh()
    for name, load in _loaders(record):
        try:
            load()
        except (BadReference, CatalogError) as error:
            sentence = str(error).removesuffix(".")
            return f"A worker cannot load {name}: {sentence}. {_advice(record)}"
    return None


def _loaders(record: BatchRecord) -> Iterator[tuple[str, Callable[[], Any]]]:
    spec = record.spec
    for scorer in spec.scorers:
        if isinstance(scorer, CustomScorer):
            yield f"the scorer {scorer.function!r}", partial(_load_function, scorer.function)
    yield "the agent's tools", partial(load_tools, spec.agent.tools)
    yield from list_loaders(spec.agent)


def _load_function(reference: str) -> None:
    if not callable(value := import_reference(reference)):
        raise BadReference(f"it is a {type(value).__name__}, and must be a function")


def _advice(record: BatchRecord) -> str:
    """Say where workers find modules, with the folder of the batch's file."""
    file = record.options.get(FILE_OPTION)
    is_file = isinstance(file, str) and Path(file).is_absolute()
    folder = str(Path(str(file)).parent) if is_file else "FOLDER"
    return (
        "Put its module where the worker looks, install what it imports, or start the worker with "
        f"PERDURE_CODE={folder}."
    )
