"""`perdure batch watch`: a batch while it runs, or the conversation of one of its samples."""

from perdure.agent.loop.state import State
from perdure.cli.batch.control import connect_batches
from perdure.cli.batch.follow import attach
from perdure.cli.commands import turns
from perdure.cli.declarations.batches import Watch
from perdure.cli.declarations.conversations import Watch as WatchConversation
from perdure.cli.environment import find_environment, open_batch
from perdure.cli.output import note
from perdure.client.ids import split_owner
from perdure.errors import NotFound
from perdure.evaluation.sample import conversation_id
from perdure.operations.error_reports import EXIT_OK
from perdure.storage.batches import BatchRecord, list_sample_ids
from perdure.storage.readable_batch import ReadableBatch

MAX_LISTED_SAMPLES = 10


async def watch(options: Watch) -> int:
    if options.sample is None:
        environment = await find_environment()
        batch = await (await connect_batches(environment.settings)).get(*split_owner(options.name))
        return await attach([batch], options.output, environment)
    folder, record = await open_batch(options.name)
    name, number = await _find_attempt(folder, record, options.sample, options.epoch)
    if (owner := split_owner(options.name)[1]) is not None:
        name = f"{owner}/{name}"
    note(f"The conversation {name}: `perdure show {name}` prints it whole.")

    async def has_result(state: State) -> bool:
        """Tell whether the attempt has ended: a sample may have several turns."""
        place = (str(options.sample), options.epoch, number)
        return state.at_rest and await folder.read_result(*place) is not None

    watch_options = WatchConversation(conversation_id=name, until_rest=True, output=options.output)
    await turns.watch_until(has_result, watch_options)
    return EXIT_OK


async def _find_attempt(
    folder: ReadableBatch, record: BatchRecord, sample: str, epoch: int
) -> tuple[str, int]:
    """Return the conversation and the number of the newest attempt. Raises NotFound."""
    finished = [number for at, number in await folder.list_attempts(sample) if at == epoch]
    next_number = max(finished, default=-1) + 1
    # The attempt after the newest with a result is the one that runs, if any does.
    for number in (next_number, next_number - 1):
        name = conversation_id(f"{folder.user_id}/{folder.name}", sample, epoch, number)
        if number >= 0 and await folder.open_log(name).exists():
            return name, number
    ids = await list_sample_ids(folder, record)
    if sample in ids:
        raise NotFound(
            f"The sample {sample!r} of {folder.name} has not begun.",
            f"`perdure batch watch {folder.name}` shows how far the batch is.",
        )
    listed = ", ".join(ids[:MAX_LISTED_SAMPLES])
    more = ", and others" if len(ids) > MAX_LISTED_SAMPLES else ""
    raise NotFound(f"{folder.name} has no sample {sample!r}.", f"It has {listed}{more}.")
