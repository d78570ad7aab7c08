"""`python -m reliability.upgrade --from FOLDER`: upgrade with conversations at work.

FOLDER is a checkout of an earlier version, whose dependencies this one's environment has. Two
workers and a client of that version hold conversations of several turns: with calls that must not
run twice, messages, rests, and actions that wait for a person. Each worker is replaced by one of
this version, the new beside the old. With `--temporal PROGRAM`, the server is one of an earlier
version too, and is replaced on its database. Then a client of this version comes. Afterwards each
conversation must have ended its turns, each message be there once and in order, each call have one
answer and no unrepeatable one two effects, and `verify` must find nothing.
"""

import argparse
import asyncio
import json
import os
import random
import signal
import sys
from collections import Counter
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from perdure.embedded.process import ChildProcess
from perdure.embedded.seaweed import Seaweed
from perdure.embedded.temporal import TemporalServer
from perdure.storage.log.event_log import EventLog
from perdure.storage.open import open_store
from perdure.storage.store import S3Access
from perdure.testing.server import ScriptedServer, serve_app
from reliability.chaos.environment import BUCKET, TASK_QUEUE, USER, worker_environment
from reliability.chaos.evidence import evidence_folder
from reliability.chaos.tools import EFFECTS, read_effects
from reliability.upgrade.audit import audit_log
from reliability.upgrade.scripts import TURNS, make_scripts

ROOT = Path(__file__).parents[2]
LOAD = Path(__file__).with_name("load.py")

CONVERSATIONS = 16
CALM, PAUSE = 25.0, 15.0
"""Seconds of work before the first change, and after each."""

HEARTBEAT_TIMEOUT = 15.0
"""Seconds: a worker on a busy machine is not one that was lost."""

MAX_DRAIN, MAX_END = 90.0, 600.0
"""Seconds from SIGTERM to the exit of a worker, and from `stop` to the end of a client."""


@dataclass(frozen=True)
class Version:
    """The code in a folder, run in an environment of variables."""

    name: str
    folder: Path
    env: Mapping[str, str]

    async def start(self, name: str, *command: str) -> ChildProcess:
        """Start a program of this version, its output in a file beside the others."""
        folder = Path(self.env["PERDURE_DATA"]) / f"{self.name}-{name}"
        folder.mkdir(parents=True)
        env = {**self.env, "PYTHONPATH": str(self.folder), "PERDURE_DATA": str(folder)}
        log = folder / "output"
        return await ChildProcess.start(
            name, [sys.executable, "-P", *command], log, env, self.folder
        )

    async def start_worker(self, name: str) -> ChildProcess:
        """Start a worker, and wait until it polls."""
        worker = await self.start(name, "-m", "perdure.worker")
        log = Path(self.env["PERDURE_DATA"]) / f"{self.name}-{name}" / "output"

        async def polls() -> bool:
            return "polls" in log.read_text()

        await worker.wait_until(polls)
        return worker


async def run(options: argparse.Namespace, seed: int, folder: Path) -> dict[str, Any]:
    """Run the upgrade, with files in `folder`; return the report."""
    async with AsyncExitStack() as ending:
        temporal = await TemporalServer.prepare(folder / "temporal", ui=False)
        current = replace(temporal)
        if options.temporal is not None:
            temporal = replace(temporal, _command=_with_program(temporal, options.temporal))
        await temporal.launch()
        seaweed = await Seaweed.start(folder / "store")
        ending.push_async_callback(seaweed.stop)
        await seaweed.make_bucket(BUCKET)
        access = S3Access(seaweed.endpoint, seaweed.access_key, seaweed.secret_key, "us-east-1")
        store = open_store(f"s3://{BUCKET}", access)
        ending.push_async_callback(store.close)
        scripts = make_scripts(seed)
        address = await ending.enter_async_context(serve_app(ScriptedServer(scripts).app()))
        env = worker_environment(temporal.address, seaweed.endpoint, access)
        del env["PERDURE_LOG_FORMAT"]  # a version that does not know it yet refuses it
        env |= {EFFECTS: str(folder / "effects"), "PERDURE_DATA": str(folder)}
        before = Version("before", options.source.absolute(), env)
        now = Version("now", ROOT, env)
        job = {
            "temporal": temporal.address,
            "store": f"s3://{BUCKET}",
            "user": USER,
            "queue": TASK_QUEUE,
            "model": f"{address}/v1",
            "models": list(scripts),
            "turns": TURNS,
            "heartbeat_timeout": HEARTBEAT_TIMEOUT,
            "conversations": options.conversations,
        }
        old = [await before.start_worker(f"worker-{nth}") for nth in (1, 2)]
        first = await _start_load(before, job, seed)
        await asyncio.sleep(CALM)
        new = []
        for nth, worker in enumerate(old, 1):
            new.append(await now.start_worker(f"worker-{nth}"))
            print(f"worker {nth} is replaced", file=sys.stderr, flush=True)
            await _drain(worker)
            await asyncio.sleep(PAUSE)
        for worker in new:
            ending.push_async_callback(worker.stop)
        if options.temporal is not None:
            await temporal.stop()
            await current.launch()
            print("Temporal is replaced", file=sys.stderr, flush=True)
            await asyncio.sleep(PAUSE)
        ending.push_async_callback(current.stop if options.temporal else temporal.stop)
        second = await _start_load(now, job, seed + 1)
        await asyncio.sleep(PAUSE)
        held = [*await _end_load(before, first), *await _end_load(now, second)]
        counts, findings = Counter[str](), list[str]()
        runs = Counter(effect.action_id for effect in read_effects(folder / "effects"))
        for line in held:
            log = EventLog(store, USER, line["id"])
            found = await audit_log(log, line["messages"], runs, counts)
            findings += [f"{line['id']}: {sentence}" for sentence in found]
    return {"seed": seed, "counts": dict(sorted(counts.items())), "findings": findings}


def _with_program(server: TemporalServer, program: str) -> list[str]:
    """Return the command of a server with another program, which knows no newer option."""
    return [program, *server._command[1:]]


async def _start_load(version: Version, job: Mapping[str, Any], seed: int) -> ChildProcess:
    stop = Path(version.env["PERDURE_DATA"]) / f"stop-{version.name}"
    fields = {**job, "seed": seed, "stop": str(stop)}
    return await version.start("client", str(LOAD), json.dumps(fields))


async def _end_load(version: Version, client: ChildProcess) -> list[dict[str, Any]]:
    """Let a client end its conversations; return what it wrote. Raises TimeoutError."""
    folder = Path(version.env["PERDURE_DATA"])
    (folder / f"stop-{version.name}").touch()
    async with asyncio.timeout(MAX_END):
        code = await client.wait()
    lines = (folder / f"{version.name}-client" / "output").read_text().splitlines()
    if code != 0:
        raise SystemExit(f"the client {version.name} exited with {code}: {lines[-1:]}")
    return [json.loads(line) for line in lines if line.startswith("{")]


async def _drain(worker: ChildProcess) -> None:
    os.kill(worker.pid, signal.SIGTERM)
    async with asyncio.timeout(MAX_DRAIN):
        await worker.wait()


def main() -> None:
    """Exit code 0 means that nothing was lost, and nothing run twice that must not be."""
    parser = argparse.ArgumentParser(prog="python -m reliability.upgrade", description=__doc__)
    parser.add_argument(
        "--from", dest="source", type=Path, required=True, help="a checkout of an earlier version"
    )
    parser.add_argument("--temporal", help="the program `temporal` of an earlier version")
    parser.add_argument("--conversations", type=int, default=CONVERSATIONS, help="of each client")
    parser.add_argument("--seed", type=int, help="decides all that chance decides here")
    parser.add_argument("--keep", action="store_true", help="keep logs and stored objects")
    options = parser.parse_args()
    if not (options.source / "perdure" / "worker.py").is_file():
        parser.error(f"{options.source} is no checkout of perdure: it has no perdure/worker.py.")
    seed = random.randrange(1_000_000) if options.seed is None else options.seed
    print(f"seed {seed}", file=sys.stderr)
    with evidence_folder(True) as evidence:
        report = asyncio.run(run(options, seed, evidence.path))
        evidence.keep = options.keep or bool(report["findings"])
    print(json.dumps(report, indent=2))
    sys.exit(1 if report["findings"] else 0)


if __name__ == "__main__":
    main()
