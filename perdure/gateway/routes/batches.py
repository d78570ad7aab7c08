"""Batches: start and steer them, their results and the page about them."""

import asyncio
from datetime import UTC, datetime
from tempfile import TemporaryFile
from typing import IO, Annotated, Any

from fastapi import APIRouter, Query, Response
from fastapi.responses import StreamingResponse

from perdure.api.batches import Batch, BatchResults, RetryBatch, Samples, StartBatch
from perdure.api.batches import Batches as BatchList
from perdure.client.access import require_owner
from perdure.client.batch.batches import Batches
from perdure.errors import NotFound
from perdure.evaluation.messages import LimitsUpdate
from perdure.evaluation.progress import Progress
from perdure.evaluation.result import SampleResult
from perdure.evaluation.summary import Summary, Tally
from perdure.exports.report.batch import page
from perdure.exports.report.collect import BatchDescription, Collected
from perdure.gateway.agents.own_secrets import agent_user
from perdure.gateway.batch_calls import ToRead, ToWrite
from perdure.gateway.callers import COSTLY, Reader, Writer
from perdure.gateway.views.batches import (
    check_rows,
    find_result,
    parse_request,
    read_results,
    show_all,
    show_batch,
)
from perdure.gateway.views.downloads import download_headers, read_and_close
from perdure.storage.batches import read_current_results
from perdure.temporal.names import conversation_workflow_id

router = APIRouter(prefix="/v1/batches", tags=["batches"])

REPORT_RESPONSES: dict[int | str, dict[str, Any]] = {200: {"content": {"text/html": {}}}}


@router.post("", status_code=201, responses={200: {"model": Batch}}, dependencies=COSTLY)
async def start_batch(body: StartBatch, caller: Writer, response: Response) -> Batch:
    """Start a batch; the answer is 200 where it runs already."""
    catalog = caller.gateway.agents
    spec = await parse_request(body.batch, catalog, agent_user(caller.client))
    await asyncio.to_thread(check_rows, body.samples, catalog.policy)
    handle = await Batches.from_client(caller.client).run(
        spec, body.mode, body.options, body.samples
    )
    response.status_code = 200 if handle.attached else 201
    response.headers["Location"] = f"/v1/batches/{handle.name}"
    return await show_batch(handle, with_trouble=False)


@router.get("")
async def list_batches(
    caller: Reader,
    limit: Annotated[int, Query(ge=1, le=100)] = 50,
    cursor: Annotated[str | None, Query(max_length=200)] = None,
) -> BatchList:
    """List the batches of the user by name."""
    batches = Batches.from_client(caller.client)
    names = [name for name in await batches.list_names() if cursor is None or name > cursor]
    items = await show_all(map(batches.batch, names[:limit]))
    more = names[limit - 1] if len(names) > limit else None
    return BatchList(items=tuple(items), next_cursor=more)


@router.get("/{name}")
async def get_batch(batch: ToRead, trouble: bool = True) -> Batch:
    """Show a batch with its progress, and with `trouble`, why it does not go on."""
    return await show_batch(batch, with_trouble=trouble)


@router.get("/{name}/spec")
async def get_spec(batch: ToRead) -> dict[str, Any]:
    """Show the specification of a batch, with the keys of its file."""
    record = await batch.load_record()
    return record.spec.model_dump(mode="json", exclude_none=True)


@router.post("/{name}/pause", status_code=204)
async def pause(batch: ToWrite) -> None:
    """Start no further samples; running ones finish."""
    await batch.pause()


@router.post("/{name}/resume", status_code=204)
async def resume(batch: ToWrite) -> None:
    """Start samples again."""
    await batch.resume()


@router.post("/{name}/retune")
async def retune(body: LimitsUpdate, batch: ToWrite) -> Progress:
    """Change the concurrency and the limits of a batch that runs."""
    return await batch.update_limits(body)


@router.post("/{name}/retry", dependencies=COSTLY)
async def retry(body: RetryBatch, batch: ToWrite, caller: Writer) -> Batch:
    """Run the rest of a batch again, or score it again; only its own user may."""
    await require_owner(batch.folder.store)
    handle = await Batches.from_client(caller.client).rerun(batch.name, body.mode)
    return await show_batch(handle, with_trouble=False)


@router.get("/{name}/results")
async def list_results(
    batch: ToRead,
    limit: Annotated[int, Query(ge=1, le=200)] = 100,
    cursor: Annotated[str | None, Query(max_length=100)] = None,
) -> BatchResults:
    """List the results of a batch in the order of its samples."""
    return await read_results(batch.folder, await batch.load_record(), limit, cursor)


@router.get("/{name}/result")
async def get_result(
    batch: ToRead, sample: Annotated[str, Query(min_length=1, max_length=200)]
) -> SampleResult:
    """Read the result of one sample, with all attempts; without any, it has none."""
    return await find_result(batch.folder, await batch.load_record(), sample)


@router.get("/{name}/samples")
async def list_samples(
    batch: ToRead,
    sample_set: Annotated[str, Query(pattern="^[0-9a-f]{16}$")],
    chunk: Annotated[int, Query(ge=0, le=10**7)] = 0,
) -> Samples:
    """List a part of the samples of a set of the batch, in order."""
    record = await batch.load_record()
    if sample_set != record.samples or chunk >= record.chunks:
        raise NotFound("The batch has no such part of samples.", "Look at the batch again.")
    return Samples(items=tuple(await batch.folder.read_chunk(sample_set, chunk)))


@router.get("/{name}/summary", dependencies=COSTLY)
async def summarize(batch: ToRead) -> Summary:
    """Summarize the results of a batch: scores with their errors, counts, usage."""
    record = await batch.load_record()
    tally = Tally(record.spec.reducers)
    async for result in read_current_results(batch.folder, record):
        tally.add(result)
    return tally.summary(record.expected_attempts)


@router.get(
    "/{name}/report", response_class=Response, responses=REPORT_RESPONSES, dependencies=COSTLY
)
async def report(batch: ToRead) -> Response:
    """Make the page about a batch, one file that needs no other."""
    record = await batch.load_record()
    about = BatchDescription(
        spec=record.spec,
        expected=record.expected_attempts,
        made=f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC",
        workflow_prefix=conversation_workflow_id(batch.folder.user_id, ""),
    )
    results = Collected(record.spec)
    async for result in read_current_results(batch.folder, record):
        results.add(result)
    for chunk in range(record.chunks):
        results.add_questions(await batch.folder.read_chunk(record.samples, chunk))
    file: IO[bytes] = TemporaryFile()  # noqa: SIM115 - the answer closes it
    await asyncio.to_thread(file.writelines, page(about, results))
    headers = {**download_headers(f"{batch.name}.html"), "Content-Length": str(file.tell())}
    return StreamingResponse(read_and_close(file), headers=headers, media_type="text/html")
