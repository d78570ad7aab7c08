"""Commands for operators: run the stack and workers, check, deploy, reopen and purge."""

import asyncio
import contextlib
import os
import shlex
import sys
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from dataclasses import asdict
from pathlib import Path

from rich.text import Text
from temporalio.client import Client as TemporalClient

from perdure.cli.commands.gateway import can_serve_gateway, make_login
from perdure.cli.declarations import conversations, operations
from perdure.cli.doctor_checks import CheckResult, run_checks
from perdure.cli.environment import Environment, connect_servers, find_servers, start_stack
from perdure.cli.options import Format
from perdure.cli.output import note, print_list, show, show_result
from perdure.cli.rendering.live_region import run_beside
from perdure.client.client import Client
from perdure.embedded.discovery import await_stack
from perdure.embedded.record import ACCOUNTS, StackInfo
from perdure.errors import Invalid, Unreachable
from perdure.operations import deploy as deployment
from perdure.operations import reopen as reopening
from perdure.operations.error_reports import EXIT_FAILED, EXIT_OK
from perdure.operations.process import stop_signal
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

NOTE_AFTER = 1.0
"""Seconds of waiting before a note says for what."""


async def dev(options: conversations.Dev) -> int:
    settings = load_settings(data=options.data)
    stop = stop_signal()
    serve = asyncio.ensure_future(_serve(settings, options))
    await asyncio.wait({serve, asyncio.ensure_future(stop.wait())}, return_when="FIRST_COMPLETED")
    if serve.done():
        serve.result()  # raises why it ended
    note("\nEnding ...")
    serve.cancel()
    await asyncio.wait({serve})
    note(f"Ended. Everything is kept in {settings.data}.")
    return EXIT_OK


async def _serve(settings: Settings, options: conversations.Dev) -> None:
    gateway = options.gateway and can_serve_gateway()
    parts = ("Temporal", "an S3 store", "a worker", *(("a gateway",) if gateway else ()))
    note(f"Starting {', '.join(parts[:-1])} and {parts[-1]} ...")
    wanted = {
        "temporal": options.port,
        "ui": options.ui_port,
        "store": options.store_port,
        "gateway": options.gateway_port,
    }
    ports = {name: port for name, port in wanted.items() if port is not None}
    if len(set(ports.values())) < len(ports):
        raise Invalid("Two servers cannot have the same port.", "Name another one.")
    async with start_stack(settings, ports, options.processes, gateway) as stack:
        environment = Environment(settings, own_stack=stack)
        await environment.run_with_stack(stack.wait_for_worker())
        await environment.run_with_stack(stack.wait_for_gateway())
        _announce(stack.info, settings, options.output, await make_login(stack.info, settings))
        await stack.wait()


def _list_keys(info: StackInfo) -> list[str]:
    return [name for name in info.worker_variables or () if name.endswith("_API_KEY")]


def _announce(info: StackInfo, settings: Settings, output: Format, login: str | None) -> None:
    name, _, gaps = (info.sandbox or "").partition(", ")
    strongest = name == "bubblewrap"  # what others leave open has to be seen
    sandbox = name if strongest else f"{name}, {gaps}"
    lines = {
        "gateway": login,
        "Temporal UI": info.ui,
        "Temporal": info.temporal,
        "codec": info.codec,
        "S3 store": f"{info.store}, bucket {info.bucket}",
        "data": info.folder,
        "worker": f"pid {info.pids['worker']}, with the sandbox {sandbox}",
        "model keys": ", ".join(_list_keys(info)) or "none: `export` one here, and start again",
    }
    show_result(
        {**info.model_dump(mode="json", exclude={"environment"}), "login": login},
        output,
        "",
        *(f"{name:<13} {value}" for name, value in lines.items() if value),
        remark="\n".join(("", *_next_steps(info.folder, settings))),
    )


def _next_steps(folder: Path, settings: Settings) -> Iterator[str]:
    yield "In another terminal:"
    if folder != type(settings).model_fields["data"].get_default(call_default_factory=True):
        yield f"  export PERDURE_DATA={shlex.quote(str(folder))}"
    yield '  perdure run "TASK" --model NAME'
    yield "  perdure chat --model NAME"
    yield '  eval "$(perdure env)"            for `temporal`, `aws` and programs of your own'
    yield "^C here ends all of it. Everything is kept."


async def env(options: operations.Env) -> None:
    settings = load_settings(data=options.data)
    info = await await_stack(settings.data, note)
    if info is None:
        hint = "Start one with `perdure dev`, or name its folder with --data."
        raise Unreachable(f"No stack runs in {settings.data}.", hint)
    foreign = (name for name in os.environ if name.startswith(ACCOUNTS))
    show_result(
        info.environment,
        options.output,
        *(f"unset {name}" for name in sorted(foreign) if name not in info.environment),
        *(f"export {name}={shlex.quote(value)}" for name, value in info.environment.items()),
        remark='For a shell: eval "$(perdure env)"' if sys.stdout.isatty() else "",
    )


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
            await find_servers()
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
    queue = (await find_servers()).settings.task_queue
    temporal = await connect()
    if (build_id := options.build_id) is not None:
        async with run_beside(_note_wait(temporal, queue, build_id)):
            await deployment.deploy(temporal, queue, build_id, options.ramp)
    versions = await deployment.list_versions(temporal, queue)
    with print_list(asdict, _show_version, options.output) as print_version:
        for version in versions:
            print_version(version)
    if not versions:
        note(f"No worker on the queue {queue!r} was ever started with a PERDURE_BUILD_ID.")


async def _note_wait(temporal: TemporalClient, queue: str, build_id: str) -> None:
    await asyncio.sleep(NOTE_AFTER)
    if (await deployment.list_workers(temporal, queue))[build_id]:
        note(f"Waiting until the version {build_id!r} is in force everywhere ...")
    else:
        note(f"Waiting up to 30 s for a worker with PERDURE_BUILD_ID={build_id} on {queue!r} ...")


def _show_version(version: deployment.WorkerVersion) -> None:
    status = version.status if version.percent is None else f"{version.status} {version.percent:g}%"
    show(f"{version.build_id:<20}  {status:<12}  {', '.join(version.workers) or 'no worker'}")


async def reopen(options: conversations.Reopen) -> int:
    ids = options.conversation_ids or []
    if bool(ids) is options.every:
        raise Invalid("Name conversations, or give --all.", "`perdure ls` lists them.")
    client = await connect_servers((await find_servers(user=options.user)).settings)
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
