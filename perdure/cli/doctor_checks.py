"""The checks of `perdure doctor`."""

import asyncio
import os
import platform
import shutil
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeAlias

from temporalio.api.enums.v1 import TaskQueueType
from temporalio.api.workflowservice.v1 import DescribeNamespaceRequest, GetSystemInfoRequest
from temporalio.client import Client
from temporalio.service import RPCError

from perdure.agent.loop.model_queues import (
    llm_queue_name,
    model_queue_name,
    tools_queue_name,
)
from perdure.cli.environment import find_servers
from perdure.client.store import open_configured_store
from perdure.embedded.record import StackInfo
from perdure.errors import Invalid, Unreachable
from perdure.models.litellm.route import KEY_VARIABLES
from perdure.operations.deploy import list_workers
from perdure.operations.error_reports import EXIT_OK, EXPECTED_ERRORS, report_error
from perdure.operations.worker.process import choose_configured_sandbox, probe_configured_store
from perdure.settings.settings import Settings, load_settings
from perdure.temporal.codec import SETTING, build_encryption
from perdure.temporal.connect import connect
from perdure.temporal.register_attributes import missing_attributes
from perdure.temporal.search_attributes import ATTRIBUTES
from perdure.testing.script import read_scripts
from perdure.testing.scripted_model import SCRIPTED_PREFIX

Check: TypeAlias = Callable[["Checkup"], Awaitable[str]]
"""A check returns what it found, and raises one of EXPECTED_ERRORS if something must be mended."""

MIN_FREE_BYTES = 1 << 30
"""Free space that the disk of the data folder should have."""

KEYLESS_PROVIDERS = {"ollama", "ollama_chat", "lm_studio", "hosted_vllm", "llamafile"}


@dataclass(frozen=True)
class CheckResult:
    """The outcome of one check."""

    check: str
    message: str
    hint: str = ""
    exit_code: int = EXIT_OK

    def fields(self) -> dict[str, Any]:
        return {
            "ok": self.exit_code == EXIT_OK,
            "check": self.check,
            "message": self.message,
            "hint": self.hint,
            "exit_code": self.exit_code,
        }


@dataclass
class Checkup:
    """The servers and settings that the checks examine, with one connection to Temporal."""

    settings: Settings
    stack_info: StackInfo | None = None
    connection: asyncio.Future[Client] | None = None

    async def connect(self) -> Client:
        """Return the connection. Raises Unreachable, in every check that needs it."""
        if self.connection is None:
            self.connection = asyncio.ensure_future(connect(quiet=True))
        return await self.connection


async def run_checks() -> list[CheckResult]:
    """Run every check, whether others fail or not. Raises SettingsError."""
    checks = LOCAL_CHECKS
    try:
        environment = await find_servers()
    except Unreachable:  # reported by check_stack
        checkup = Checkup(load_settings())
    else:
        checkup = Checkup(environment.settings, environment.stack_info)
        checks = LOCAL_CHECKS | CONNECTED_CHECKS
        checks |= {"limits": check_model_rates} if checkup.settings.model_rates else {}
    runs = (_run_check(name, check, checkup) for name, check in checks.items())
    return list(await asyncio.gather(*runs))


async def _run_check(name: str, check: Check, checkup: Checkup) -> CheckResult:
    try:
        return CheckResult(name, await check(checkup))
    except EXPECTED_ERRORS as error:
        failure = report_error(error)
        return CheckResult(name, failure.message, failure.hint, failure.exit_code)


async def check_versions(_: Checkup) -> str:
    names = ("perdure", "temporalio", "boto3", "litellm")
    versions = ", ".join(f"{name} {version(name)}" for name in names)
    return f"{versions}, Python {platform.python_version()}"


async def check_sandbox(checkup: Checkup) -> str:
    """Name the sandbox that a worker started here would use."""
    choice = choose_configured_sandbox(checkup.settings)
    return " ".join([*choice.rejections, choice.description])


async def check_stack(checkup: Checkup) -> str:
    """Name the servers. Raises Invalid where a server is configured without a store."""
    settings = checkup.settings
    if checkup.stack_info is not None:
        return f"that of `perdure dev`, in {settings.data}"
    if settings.store is not None:
        return f"configured: {settings.store}"
    if address := os.environ.get("TEMPORAL_ADDRESS"):
        raise Invalid(
            f"TEMPORAL_ADDRESS is {address}, and no store is set.",
            "Set PERDURE_STORE too, or unset it and use `perdure dev`.",
        )
    return f"none runs in {settings.data}, and none is configured: `perdure dev` starts one"


async def check_temporal(checkup: Checkup) -> str:
    client = await checkup.connect()
    service = client.workflow_service
    try:
        await service.describe_namespace(DescribeNamespaceRequest(namespace=client.namespace))
        server = await service.get_system_info(GetSystemInfoRequest())
    except RPCError as error:
        raise Invalid(
            f"The namespace {client.namespace} cannot be used: {error.message}",
            "Make it, or set TEMPORAL_NAMESPACE.",
        ) from error
    address = client.service_client.config.target_host
    return f"{server.server_version} at {address}, namespace {client.namespace}"


async def check_payloads(checkup: Checkup) -> str:
    """Name the payload keys, without their values."""
    encryption = build_encryption(checkup.settings.payload_keys)
    if encryption is None:
        return f"Temporal keeps them in clear: {SETTING} is not set"
    writes, *others = encryption.key_ids
    others_note = f"; read with {', '.join(map(repr, others))} too" if others else ""
    return f"Temporal keeps them encrypted with the key {writes!r}{others_note}"


async def check_search_attributes(checkup: Checkup) -> str:
    if checkup.settings.search_attributes == "off":
        return "search attributes are switched off"
    client = await checkup.connect()
    if keys := await missing_attributes(client):
        raise Invalid(
            f"The namespace {client.namespace} has no {', '.join(key.name for key in keys)}.",
            "Run `perdure setup temporal`, or set PERDURE_SEARCH_ATTRIBUTES=off.",
        )
    return f"all {len(ATTRIBUTES)} search attributes are registered"


async def check_worker(checkup: Checkup) -> str:
    """Name the workers, and how many ask models and run tools."""
    client = await checkup.connect()
    kinds = (TaskQueueType.TASK_QUEUE_TYPE_WORKFLOW, TaskQueueType.TASK_QUEUE_TYPE_ACTIVITY)
    queue = checkup.settings.task_queue
    pollers = await asyncio.gather(*(_find_pollers(client, queue, kind) for kind in kinds))
    if not all(pollers):
        raise Unreachable(
            f"No worker takes work from the queue {queue!r}.",
            "Start one with `perdure dev` or `perdure worker`.",
        )
    names = ", ".join(sorted(set.intersection(*pollers)))
    return f"{names} on the queue {queue!r}; {await _count_kinds(client, queue)}"


async def _count_kinds(client: Client, queue: str) -> str:
    """Count the workers that ask models, and those that run tools. Raises Unreachable for none."""
    models, tools = await asyncio.gather(
        *(_find_pollers(client, name(queue)) for name in (llm_queue_name, tools_queue_name))
    )
    if not models:
        raise _no_worker("asks models", llm_queue_name(queue), "model")
    if not tools:
        raise _no_worker("runs tools", tools_queue_name(queue), "tools")
    return f"ask models: {len(models)}, run tools: {len(tools)}"


def _no_worker(does: str, queue: str, kind: str) -> Unreachable:
    return Unreachable(
        f"No worker {does}: none takes work from the queue {queue!r}.",
        f"Start one with `perdure worker --only {kind}`, or one for everything.",
    )


async def _find_pollers(
    client: Client,
    queue: str,
    kind: TaskQueueType.ValueType = TaskQueueType.TASK_QUEUE_TYPE_ACTIVITY,
) -> set[str]:
    """List the workers of all versions that have lately polled the queue."""
    return set().union(*(await list_workers(client, queue, kind)).values())


async def check_model_rates(checkup: Checkup) -> str:
    """Check that a worker polls the queue of each rate-limited model."""
    client, settings = await checkup.connect(), checkup.settings
    for model in settings.model_rates:
        if not await _find_pollers(client, model_queue_name(settings.task_queue, model)):
            raise Unreachable(
                f"No worker that runs knows the limit of {model}.",
                "Start the workers again with the same PERDURE_MODEL_RATES.",
            )
    rates = (f"{model} {rate:g} calls a minute" for model, rate in settings.model_rates.items())
    return f"all workers together: {', '.join(rates)}"


async def check_store(checkup: Checkup) -> str:
    settings = checkup.settings
    await probe_configured_store(open_configured_store(settings), settings)
    return f"{settings.store} can be listed, read and written, and keeps the first writer's object"


async def check_model(checkup: Checkup) -> str:
    """Look for the model's key in this environment, as a worker started here would."""
    name = checkup.settings.model
    if name is None:
        return "none is set: give `perdure run` a --model, or set PERDURE_MODEL"
    if name.startswith(SCRIPTED_PREFIX):
        read_scripts(Path(name.removeprefix(SCRIPTED_PREFIX).partition("#")[0]))
        return f"{name} needs no key"
    provider, slash, _ = name.partition("/")
    if not slash or provider in KEYLESS_PROVIDERS:
        return f"{name}; whether it needs a key is for its provider to say"
    variables = KEY_VARIABLES.get(provider, f"{provider.upper()}_API_KEY").split(" and ")
    if missing := [name for name in variables if not os.environ.get(name)]:
        raise Invalid(
            f"{name} needs a key, and {' and '.join(missing)} is not set.",
            "Set it in the environment of the worker.",
        )
    return f"{name}, its key is set ({', '.join(variables)})"


async def check_data_folder(checkup: Checkup) -> str:
    folder = checkup.settings.data.absolute()
    existing = next(path for path in (folder, *folder.parents) if path.exists())
    if not existing.is_dir() or not os.access(existing, os.W_OK | os.X_OK):
        raise Invalid(f"Nothing can be kept in {folder}.", "Set PERDURE_DATA to another folder.")
    free = shutil.disk_usage(existing).free
    if free < MIN_FREE_BYTES:
        raise Invalid(f"{_format_gigabytes(free)} are free for {folder}.", "Make room on its disk.")
    return f"{folder}, {_format_gigabytes(free)} free"


def _format_gigabytes(size: int) -> str:
    return f"{size / (1 << 30):.1f} GiB"


LOCAL_CHECKS: dict[str, Check] = {
    "versions": check_versions,
    "data": check_data_folder,
    "sandbox": check_sandbox,
    "stack": check_stack,
}

CONNECTED_CHECKS: dict[str, Check] = {
    "temporal": check_temporal,
    "payloads": check_payloads,
    "search": check_search_attributes,
    "worker": check_worker,
    "store": check_store,
    "model": check_model,
}
