"""The cost of a snapshot of a workspace: `python -m bench.snapshots [-o json]`.

5,000 files of source code's size: a base, one file changed, nothing changed, and restoring all of
it on an empty disk; by a worker that remembers, and by one that has just started. Beside it, on the
same folder, `tar` through gzip and `git` (which loses modes, times, empty folders and inner
repositories).
"""

import argparse
import asyncio
import json
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

from perdure.embedded.seaweed import Seaweed
from perdure.storage.files import FileStore
from perdure.storage.s3 import S3Store
from perdure.storage.snapshots.manifest import SnapshotCache
from perdure.storage.snapshots.restore import restore
from perdure.storage.snapshots.take import take
from perdure.storage.store import S3Access, Store, list_keys

T = TypeVar("T")

PREFIX = "users/bench/conversations/0195ab6c-0000-7000-8000-000000000001/"
WORDS = ("def", "return", "self", "import", "value", "for", "in", "not", "None", "index", "\n    ")
COMMIT = "git add -A && git -c user.name=bench -c user.email=bench@example.org commit -qm bench"


def make(folder: Path, files: int) -> None:
    dice = random.Random(0)
    for nth in range(files):
        path = folder / f"package{nth // 500}" / f"part{nth // 20 % 25}" / f"module{nth}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(" ".join(dice.choices(WORDS, k=dice.randrange(50, 1500))))


def no_secrets(_: bytes) -> set[str]:
    return set()


async def measure_store(store: Store, place: Path, files: int) -> dict[str, dict[str, float]]:
    folder, memory = place / "workspace", SnapshotCache()
    make(folder, files)
    rows: dict[str, dict[str, float]] = {}

    async def timed(name: str, work: Callable[[], Awaitable[T]]) -> T:
        before = {key async for key in list_keys(store, PREFIX)}
        begun = time.perf_counter()
        done = await work()
        took = time.perf_counter() - begun
        new = [key async for key in list_keys(store, PREFIX) if key not in before]
        size = sum([len(await store.read(key) or b"") for key in new])
        rows[name] = {"seconds": round(took, 3), "objects": len(new), "bytes": size}
        return done

    last = await timed("base", lambda: take(store, PREFIX, folder, None, memory, no_secrets))
    assert last
    for name, known in (("1 file", memory), ("1 file, new worker", SnapshotCache())):
        (folder / "package0" / "part0" / "module0.py").write_text(name)
        last = await timed(name, lambda: take(store, PREFIX, folder, last, known, no_secrets))  # noqa: B023
        assert last
    await timed("nothing", lambda: take(store, PREFIX, folder, last, memory, no_secrets))
    key = last
    await timed("restore", lambda: restore(store, key, place / "restored"))
    subprocess.run(["diff", "-r", folder, place / "restored"], check=True)
    return rows


def measure_tar(place: Path, files: int) -> dict[str, dict[str, float]]:
    make(place / "workspace", files)
    (place / "restored").mkdir()
    archive = place / "all.tgz"
    rows = {"base": run(place, "tar", "czf", archive, "workspace")}
    rows["base"] |= {"objects": 1, "bytes": archive.stat().st_size}
    rows["1 file"] = run(place, "tar", "czf", archive, "workspace")
    rows["1 file"] |= {"objects": 1, "bytes": archive.stat().st_size}
    rows["restore"] = run(place, "tar", "xzf", archive, "-C", "restored")
    return rows


def measure_git(place: Path, files: int) -> dict[str, dict[str, float]]:
    folder = place / "workspace"
    make(folder, files)
    run(folder, "git", "init", "-q")
    rows = {"base": run(folder, "sh", "-c", COMMIT)}
    (folder / "package0" / "part0" / "module0.py").write_text("1 file")
    rows["1 file"] = run(folder, "sh", "-c", COMMIT)
    rows["nothing"] = run(folder, "sh", "-c", "git add -A && git status --porcelain")
    rows["restore"] = run(place, "git", "clone", "-q", "workspace", "restored")
    return rows


def run(place: Path, *command: str | Path) -> dict[str, float]:
    begun = time.perf_counter()
    subprocess.run(command, cwd=place, check=True)
    return {"seconds": round(time.perf_counter() - begun, 3)}


async def measure(files: int) -> dict[str, dict[str, dict[str, float]]]:
    with tempfile.TemporaryDirectory(prefix="perdure-snapshots-") as name:
        place = Path(name)
        report = {}
        store: Store = FileStore(place / "store")
        report["files"] = await measure_store(store, empty(place / "on-files"), files)
        await store.close()
        seaweed = await Seaweed.start(place / "seaweed")
        try:
            await seaweed.make_bucket("bench")
            access = S3Access(seaweed.endpoint, seaweed.access_key, seaweed.secret_key, "us-east-1")
            store = S3Store("bench", access=access)
            report["s3"] = await measure_store(store, empty(place / "on-s3"), files)
            await store.close()
        finally:
            await seaweed.stop()
        report["tar"] = measure_tar(empty(place / "on-tar"), files)
        report["git"] = measure_git(empty(place / "on-git"), files)
        return report


def empty(place: Path) -> Path:
    place.mkdir()
    return place


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.snapshots", description=__doc__)
    parser.add_argument("-o", "--output", choices=("text", "json"), default="text")
    parser.add_argument("--files", type=int, default=5000)
    options = parser.parse_args()
    report = asyncio.run(measure(options.files))
    if options.output == "json":
        json.dump(report, sys.stdout, indent=2)
        return
    for of, rows in report.items():
        for name, row in rows.items():
            cells = "  ".join(f"{value:>10,} {unit}" for unit, value in row.items())
            print(f"{of:6} {name:20} {cells}")


if __name__ == "__main__":
    main()
