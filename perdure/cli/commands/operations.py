"""Commands for operators: run the stack and workers, check, deploy, reopen and purge."""

import contextlib
import os
import sys
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import asdict

from rich.text import Text

from perdure.cli.declarations import conversations, operations
from perdure.cli.doctor_checks import CheckResult, run_checks
from perdure.cli.environment import Environment, connect_client, find_environment, start_stack
from perdure.cli.options import Format
from perdure.cli.output import note, print_list, show, show_result
from perdure.client.client import Client
from perdure.embedded.record import StackInfo
from perdure.embedded.stack import WORKER_COMMAND
from perdure.errors import Invalid, Unreachable
from perdure.operations import deploy as deployment
from perdure.operations import reopen as reopening
from perdure.operations.error_reports import EXIT_FAILED, EXIT_OK
from perdure.operations.worker_process import choose_configured_sandbox, stop_signal
from perdure.settings.settings import Settings, load_settings
from perdure.temporal.connect import connect
from perdure.temporal.register_attributes import register_attributes
from perdure.wording import count

OUTCOME_NAMES: dict[reopening.ReopenOutcome, str] = {
    "reopened": "reopened",
    "running": "running already",
    "at_rest": "at rest",
    "closed": "closed",
    "delegated": "gone on with by another",
    "damaged": "damaged",
}
"""The display text of each outcome."""

PROGRESS_INTERVAL = 100
"""Conversations between two notes on the progress."""


async def dev(options: conversations.Dev) -> int:
    settings = load_settings(data=options.data)
    stop = stop_signal()
    note("Starting Temporal, an S3 store and a worker ...")
    async with start_stack(settings) as stack:
        _announce(stack.info, settings, options.output)
        await Environment(settings, own_stack=stack).run_with_stack(stop.wait())
        note("\nEnding ...")
    note(f"Ended. Everything is kept in {settings.data}.")
    return EXIT_OK


def _announce(info: StackInfo, settings: Settings, output: Format) -> None:
    lines = {
        "Temporal UI": info.ui,
        "codec": info.codec,
        "Temporal": info.temporal,
        "S3 endpoint": info.store,
        "bucket": info.bucket,
        "worker": f"pid {info.pids['worker']}",
        "data": info.folder,
        "sandbox": choose_configured_sandbox(settings).description,
    }
    show_result(
        info.model_dump(mode="json", exclude={"environment"}),
        output,
        *(f"{name:<13} {value}" for name, value in lines.items() if value),
        remark='\nIn another terminal: `perdure run "TASK"`, `perdure ls`. ^C ends all of it.',
    )


async def worker(_: operations.Worker) -> None:
    await find_environment()  # puts a running stack's addresses into the environment
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os.execv(WORKER_COMMAND[0], WORKER_COMMAND)


async def doctor(options: operations.Doctor) -> int:
    results = await run_checks()
    with print_list(CheckResult.fields, _show_check, options.output) as print_check:
        for result in results:
            print_check(result)
    return max(result.exit_code for result in results)


def _show_check(result: CheckResult) -> None:
    verdict = Text("ok    ", "green") if result.exit_code == EXIT_OK else Text("failed", "red")
    show(verdict.append(f"  {result.check:<10} {result.message}", "default"))
    if result.hint:
        show(f"        {'':<10} {result.hint}")


async def setup_temporal(options: operations.SetupTemporal) -> None:
    if "TEMPORAL_ADDRESS" not in os.environ:
        with contextlib.suppress(Unreachable):  # no stack runs; a temporal.toml may name a server
            await find_environment()
    client = await connect()
    names = await register_attributes(client)
    result = (
        f"{count(len(names), 'search attribute')} registered"
        if names
        else "All search attributes are there"
    )
    remark = f"{result}, in the namespace {client.namespace}."
    fields = {"namespace": client.namespace, "registered": names}
    show_result(fields, options.output, *names, remark=remark)


async def deploy(options: operations.Deploy) -> None:
    if options.build_id is None and options.ramp is not None:
        raise Invalid("Say which version --ramp is about.", "`perdure deploy` lists them.")
    queue = (await find_environment()).settings.task_queue
    temporal = await connect()
    if options.build_id is not None:
        await deployment.deploy(temporal, queue, options.build_id, options.ramp)
    versions = await deployment.list_versions(temporal, queue)
    with print_list(asdict, _show_version, options.output) as print_version:
        for version in versions:
            print_version(version)
    if not versions:
        note(f"No worker on the queue {queue!r} was ever started with a PERDURE_BUILD_ID.")


def _show_version(version: deployment.WorkerVersion) -> None:
    status = version.status if version.percent is None else f"{version.status} {version.percent:g}%"
    show(f"{version.build_id:<20}  {status:<12}  {', '.join(version.workers) or 'no worker'}")


async def reopen(options: conversations.Reopen) -> int:
    ids = options.conversation_ids or []
    if bool(ids) is options.every:
        raise Invalid("Name conversations, or give --all.", "`perdure ls` lists them.")
    client = await connect_client((await find_environment(user=options.user)).settings)
    counts: Counter[str] = Counter()
    with print_list(asdict, _show_outcome, options.output) as print_outcome:
        async for result in reopening.reopen_all(client) if options.every else _reopen(client, ids):
            counts[result.outcome] += 1
            print_outcome(result)
            if counts.total() % PROGRESS_INTERVAL == 0:
                note(f"{counts.total():,} so far: {_format_counts(counts)}")
    note(_format_counts(counts) or "There are no conversations.")
    return EXIT_FAILED if counts["damaged"] else EXIT_OK


async def _reopen(client: Client, ids: list[str]) -> AsyncIterator[reopening.ReopenResult]:
    for conversation_id in dict.fromkeys(ids):
        yield await reopening.reopen(client, conversation_id)


def _show_outcome(result: reopening.ReopenResult) -> None:
    outcome = OUTCOME_NAMES[result.outcome]
    about = ": ".join(filter(None, (result.status, result.reason)))
    show(f"{result.conversation_id}  {outcome:<{len('running already')}}  {about}")


def _format_counts(counts: Counter[str]) -> str:
    parts = (f"{counts[name]:,} {label}" for name, label in OUTCOME_NAMES.items() if counts[name])
    return ", ".join(parts)
