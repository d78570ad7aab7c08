"""What `perdure doctor` looks at."""

import asyncio
import os
import platform
import shutil
from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeAlias

from temporalio.api.enums.v1 import TaskQueueType
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflowservice.v1 import (
    DescribeNamespaceRequest,
    DescribeTaskQueueRequest,
    GetSystemInfoRequest,
)
from temporalio.client import Client
from temporalio.service import RPCError

from agent.lanes import lane_of
from cli.failures import FORESEEN, OK, failure_of
from cli.stack import place
from client.codec import SETTING, encryption_of
from client.connect import connect
from client.errors import Invalid, Unreachable
from client.search import missing
from client.store import store_of
from client.walls import sandbox_of
from models.route import KEY_VARIABLES
from models.script import read_scripts
from models.scripted import PREFIX
from settings.settings import Settings, load
from storage.probe import probe
from workflows.operators import ATTRIBUTES

Check: TypeAlias = Callable[[Settings], Awaitable[str]]
"""Tells what it found; raises one of FORESEEN where something must be mended."""

ROOM = 1 << 30
"""Bytes that should be free on the disk of the data folder."""

KEYLESS = {"ollama", "ollama_chat", "lm_studio", "hosted_vllm", "llamafile"}

SILENT = timedelta(seconds=90)
"""How long ago a worker may have asked for work: it asks again every minute."""


@dataclass(frozen=True)
class Finding:
    """What came of one check."""

    check: str
    told: str
    hint: str = ""
    exit_code: int = OK

    @property
    def ok(self) -> bool:
        return self.exit_code == OK

    def fields(self) -> dict[str, Any]:
        return {"ok": self.ok, **asdict(self)}


async def examine() -> list[Finding]:
    """Every finding, each check made whatever came of the others. Raises SettingsError."""
    checks: dict[str, Check] = {"versions": versions, "data": data}
    checks |= {"sandbox": sandbox, "stack": stack}
    try:
        settings = (await place()).settings
    except Unreachable:  # said by the check of the stack
        settings = load()
    else:
        checks |= {"temporal": temporal, "payloads": payloads, "search": search, "worker": worker}
        checks |= {"store": store, "model": model}
        checks |= {"limits": limits} if settings.model_rates else {}
    return list(
        await asyncio.gather(*(_found(name, check, settings) for name, check in checks.items()))
    )


async def _found(name: str, check: Check, settings: Settings) -> Finding:
    try:
        return Finding(name, await check(settings))
    except FORESEEN as error:
        failure = failure_of(error)
        return Finding(name, failure.message, failure.hint, failure.exit_code)


async def versions(_: Settings) -> str:
    names = ("perdure", "temporalio", "boto3", "litellm")
    told = ", ".join(f"{name} {version(name)}" for name in names)
    return f"{told}, Python {platform.python_version()}"


async def sandbox(settings: Settings) -> str:
    """What a worker would use that is started from here."""
    choice = sandbox_of(settings)
    return " ".join([*choice.passed_over, choice.told])


async def stack(settings: Settings) -> str:
    found = await place()
    return f"embedded, in {settings.data}" if found.info else f"configured: {settings.store}"


async def temporal(_: Settings) -> str:
    client = await connect()
    service = client.workflow_service
    try:
        await service.describe_namespace(DescribeNamespaceRequest(namespace=client.namespace))
        server = await service.get_system_info(GetSystemInfoRequest())
    except RPCError as error:
        raise Invalid(
            f"The namespace {client.namespace} cannot be used: {error.message}",
            "Make it, or set TEMPORAL_NAMESPACE.",
        ) from error
    at = client.service_client.config.target_host
    return f"{server.server_version} at {at}, namespace {client.namespace}"


async def payloads(settings: Settings) -> str:
    """The keys are named, and never shown."""
    encryption = encryption_of(settings.payload_keys)
    if encryption is None:
        return f"Temporal keeps them in clear: {SETTING} is not set"
    writes, *others = encryption.key_ids
    also = f"; read with {', '.join(map(repr, others))} too" if others else ""
    return f"Temporal keeps them encrypted with the key {writes!r}{also}"


async def search(settings: Settings) -> str:
    if settings.search_attributes == "off":
        return "search attributes are switched off"
    client = await connect()
    if lacking := await missing(client):
        raise Invalid(
            f"The namespace {client.namespace} has no {', '.join(key.name for key in lacking)}.",
            "Run `perdure setup temporal`, or set PERDURE_SEARCH_ATTRIBUTES=off.",
        )
    return f"all {len(ATTRIBUTES)} search attributes are registered"


async def worker(settings: Settings) -> str:
    client = await connect()
    kinds = (
        TaskQueueType.TASK_QUEUE_TYPE_WORKFLOW,
        TaskQueueType.TASK_QUEUE_TYPE_ACTIVITY,
    )
    asking = await asyncio.gather(*(_pollers(client, settings.task_queue, kind) for kind in kinds))
    if not all(asking):
        raise Unreachable(
            f"No worker takes work from the queue {settings.task_queue!r}.",
            "Start one with `perdure dev` or `perdure worker`.",
        )
    return f"{', '.join(sorted(set.intersection(*asking)))} on the queue {settings.task_queue!r}"


async def _pollers(client: Client, queue: str, kind: TaskQueueType.ValueType) -> set[str]:
    """Who has lately asked for work of this kind."""
    request = DescribeTaskQueueRequest(
        namespace=client.namespace, task_queue=TaskQueue(name=queue), task_queue_type=kind
    )
    try:
        answer = await client.workflow_service.describe_task_queue(request)
    except RPCError as error:
        raise Unreachable(f"Temporal does not describe {queue!r}: {error.message}") from error
    since = datetime.now(UTC) - SILENT
    return {
        one.identity
        for one in answer.pollers
        if one.last_access_time.ToDatetime(tzinfo=UTC) > since
    }


async def limits(settings: Settings) -> str:
    """Of each model that may be asked only so often."""
    client = await connect()
    kind = TaskQueueType.TASK_QUEUE_TYPE_ACTIVITY
    for model in settings.model_rates:
        if not await _pollers(client, lane_of(settings.task_queue, model), kind):
            raise Unreachable(
                f"No worker that runs knows the limit of {model}.",
                "Start the workers again with the same PERDURE_MODEL_RATES.",
            )
    told = (f"{model} {rate:g} calls a minute" for model, rate in settings.model_rates.items())
    return f"all workers together: {', '.join(told)}"


async def store(settings: Settings) -> str:
    await probe(store_of(settings))
    return f"{settings.store} can be listed, read and written, and keeps the first writer's object"


async def model(settings: Settings) -> str:
    """The key is looked for where a worker started from here would look, and never shown."""
    name = settings.model
    if name is None:
        return "none is set: give `perdure run` a --model, or set PERDURE_MODEL"
    if name.startswith(PREFIX):
        read_scripts(Path(name.removeprefix(PREFIX).partition("#")[0]))
        return f"{name} needs no key"
    provider, slash, _ = name.partition("/")
    if not slash or provider in KEYLESS:
        return f"{name}; whether it needs a key is for its provider to say"
    wanted = KEY_VARIABLES.get(provider, f"{provider.upper()}_API_KEY").split(" and ")
    if missing := [one for one in wanted if not os.environ.get(one)]:
        raise Invalid(
            f"{name} needs a key, and {' and '.join(missing)} is not set.",
            "Set it in the environment of the worker.",
        )
    return f"{name}, its key is set ({', '.join(wanted)})"


async def data(settings: Settings) -> str:
    folder = settings.data.absolute()
    at = next(one for one in (folder, *folder.parents) if one.exists())
    if not at.is_dir() or not os.access(at, os.W_OK | os.X_OK):
        raise Invalid(f"Nothing can be kept in {folder}.", "Set PERDURE_DATA to another folder.")
    free = shutil.disk_usage(at).free
    if free < ROOM:
        raise Invalid(f"{_gigabytes(free)} are free for {folder}.", "Make room on its disk.")
    return f"{folder}, {_gigabytes(free)} free"


def _gigabytes(size: int) -> str:
    return f"{size / (1 << 30):.1f} GiB"
