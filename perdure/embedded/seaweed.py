"""An embedded S3 store: SeaweedFS in one process."""

import json
import os
import re
import secrets
import shutil
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from perdure.embedded.errors import ProcessFailed
from perdure.embedded.folder import make_folder, write_private
from perdure.embedded.ports import choose_ports
from perdure.embedded.process import ChildProcess, find_program, request_status

# The caller's variables would otherwise set the store's keys and address.
STORE_VARIABLES = re.compile(r"AWS_|WEED_|S3_")

# SeaweedFS always uses the port of its admin server plus this as that for gRPC.
GRPC_OFFSET = 10_000

# Its unused admin server delays the exit by 11 s once it is a minute old. All acknowledged writes
# are in its files by then, so it may be killed.
SEAWEED_STOP_TIMEOUT = 2.0

SERVERS = ("master", "volume", "filer", "s3")
PORT_FLAGS = [
    "admin.port",
    *(f"{server}.port{suffix}" for server in SERVERS for suffix in ("", ".grpc")),
]


@dataclass
class Seaweed:
    """A store: `endpoint` is a URL, the keys give access to everything.

    Acknowledged writes survive the death of any process, but not a power cut. The other ports need
    no key: every user of this machine can read the store.
    """

    access_key: str
    secret_key: str
    _folder: Path
    _ports: dict[str, int]
    process: ChildProcess = field(init=False)

    @classmethod
    def prepare(
        cls,
        folder: Path,
        port: int | None = None,
        report: Callable[[str], None] | None = None,
        others: Collection[int] = (),
    ) -> Self:
        """Choose the ports of a store, without starting it; objects and keys stay in `folder`.

        `port` may be that of S3; the rest is remembered from the last start. `others` are ports
        that another server is about to take. Raises PortTaken.
        """
        make_folder(folder)
        (folder / "weed.log").unlink(missing_ok=True)
        wanted = {} if port is None else {"s3.port": port}
        ports = choose_ports(folder / "ports.json", PORT_FLAGS, wanted, GRPC_OFFSET, report, others)
        return cls(*_load_keys(folder / "s3.json"), folder, ports)

    @classmethod
    async def start(cls, folder: Path) -> Self:
        """Prepare a store as `prepare` does, and launch it."""
        store = cls.prepare(folder)
        await store.launch()
        return store

    async def launch(self) -> ChildProcess:
        """Start the store, or start it again on the same ports.

        Returns when an object can be written. Raises ProcessFailed if that never happens.
        """
        _remove_stale_files(self._folder)
        _remove_sockets(self.ports)  # of a store that was killed
        # By default it writes log files into the folder for temporary files.
        command = [find_program("weed"), "-logtostderr=true", "mini", *SERVER_FLAGS]
        command += [f"-{name}={port}" for name, port in self._ports.items()]
        env = {name: text for name, text in os.environ.items() if not STORE_VARIABLES.match(name)}
        env["HOME"] = str(self._folder)  # instead of the person's ~/.seaweedfs/*.toml
        log = self._folder / "weed.log"
        self.process = await ChildProcess.start("weed", command, log, env, self._folder)
        await self.process.wait_until(lambda: _is_writable(self._ports))
        return self.process

    @property
    def ports(self) -> set[int]:
        """Return the ports that the store listens on."""
        return {*self._ports.values(), self._ports["admin.port"] + GRPC_OFFSET}

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self._ports['s3.port']}"

    @property
    def pid(self) -> int:
        return self.process.pid

    async def make_bucket(self, name: str) -> None:
        """Create the bucket `name` if it is missing."""
        status = await request_status("POST", self._ports["filer.port"], f"/buckets/{name}/")
        if status not in (201, 409):  # created, or existing
            raise ProcessFailed(f"SeaweedFS did not make the bucket {name}: HTTP status {status}.")

    async def stop(self) -> None:
        """Stop the store; its objects stay in its folder."""
        await self.process.stop(SEAWEED_STOP_TIMEOUT)
        _remove_sockets(self.ports)


def _load_keys(path: Path) -> tuple[str, str]:
    """Load the access key and the secret key from `path`; create them at the first start."""
    if not path.exists():
        credential = {"accessKey": secrets.token_hex(10), "secretKey": secrets.token_hex(20)}
        actions = ["Admin", "Read", "Write", "List", "Tagging"]
        identity = {"name": "perdure", "credentials": [credential], "actions": actions}
        write_private(path, json.dumps({"identities": [identity]}))
    credentials = json.loads(path.read_text())["identities"][0]["credentials"][0]
    return credentials["accessKey"], credentials["secretKey"]


def _remove_stale_files(folder: Path) -> None:
    # A master's state is named by its port, and a new master learns everything from the volumes.
    # The flags in mini.options would be applied again.
    for state in folder.glob("m[0-9]*"):
        shutil.rmtree(state)
    (folder / "mini.options").unlink(missing_ok=True)


def _remove_sockets(ports: Iterable[int]) -> None:
    # Each gRPC port also has a socket in /tmp, whatever TMPDIR is; SeaweedFS does not remove all.
    for port in ports:
        for path in Path("/tmp").glob(f"seaweedfs-*-grpc-{port}.sock"):
            path.unlink(missing_ok=True)


# `mini` starts its servers in the right order: in 1 s, where `server` sleeps for 8. Paths are
# relative, as a socket's has at most 108 characters. Telemetry is off.
SERVER_FLAGS = (
    "-dir=.",
    "-ip=127.0.0.1",
    "-ip.bind=127.0.0.1",
    "-s3.config=s3.json",
    "-s3.iam=false",
    "-s3.port.iceberg=0",
    "-s3.port.lance=0",
    "-s3.localSocket=s3.sock",
    "-filer.localSocket=filer.sock",
    "-webdav=false",
    "-admin.ui=false",
    "-master.telemetry=false",
    "-master.electionTimeout=1s",
    "-master.volumeSizeLimitMB=64",
    "-volume.preStopSeconds=0",
    "-volume.max=100000",
)


async def _is_writable(ports: dict[str, int]) -> bool:
    return (
        await request_status("GET", ports["s3.port"], "/healthz") == 200
        and await request_status("GET", ports["master.port"], "/dir/assign") == 200
    )
