"""Making a workspace what a sample says, before its agent sees it."""

import errno
import os
import re
import shutil
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path, PurePosixPath

from activities.command import Ran, Where, run
from evaluation.sample import File, Sample, Source
from sandbox.beneath import opened
from sandbox.sandbox import Sandbox
from sandbox.spot import Spot
from storage.snapshots.threads import to_end

KEPT = 4_000
"""Characters of the end of an output that are kept."""

TOLD = 2_000
"""Characters of it that explain a failure."""

NO_PLACE = (
    errno.ENOTDIR,
    errno.EISDIR,
    errno.EEXIST,
    errno.ELOOP,
    errno.ENAMETOOLONG,
    errno.EINVAL,
)
"""What only another name mends."""

PROGRAM = b"#!"

MOUNTS = Path("/proc/self/mountinfo")


class SetUpFailed(Exception):
    """A sentence for the author of the dataset."""


async def set_up(
    sample: Sample,
    folder: Path,
    sandbox: Sandbox,
    tell: Callable[[str], None],
    *,
    network: bool,
    timeout: float = 600.0,  # noqa: ASYNC109 - the command's, which is ended by then
) -> str:
    """Have the sample's files in the folder and nothing else, and run its command there.

    Gives the end of its output; `tell` is told of it meanwhile. `timeout` is in seconds. Raises
    SetUpFailed; and ToolFailed, Unusable and OSError where it is the machine's fault.
    """
    await to_end(_fill, folder, sample)
    await to_end(sandbox.prepare, folder)
    if not sample.setup or not sample.setup.strip():
        return ""
    ran = await run(sample.setup, Where(folder, sandbox, network), timeout, tell)
    if ran.exit_code != 0:
        raise SetUpFailed(_why(sample, ran, timeout))
    return ran.output[-KEPT:]


def _why(sample: Sample, ran: Ran, timeout: float) -> str:
    if ran.exit_code is None:
        what = f"took over {timeout:g} seconds"
    elif ran.exit_code < 0:
        what = f"was ended by signal {-ran.exit_code}"
    else:
        what = f"ended with exit code {ran.exit_code}"
    last = ran.output.strip()[-TOLD:]
    told = f"The end of its output: {last}" if last else "It printed nothing."
    return f"The `setup` of the sample {sample.id!r} {what}: mend it in the dataset. {told}"


def _fill(folder: Path, sample: Sample) -> None:
    root = folder.resolve(strict=True)
    _empty(root)
    for name, body in _bodies(sample.files).items():
        try:
            _write(root, PurePosixPath(name), body)
        except OSError as error:
            if error.errno not in NO_PLACE:
                raise
            raise SetUpFailed(
                f"The file {name!r} of the sample {sample.id!r} cannot be written "
                f"({os.strerror(error.errno)}): give it another name in the dataset."
            ) from error


def _bodies(files: Mapping[str, File]) -> dict[str, bytes]:
    return {name: _body(file) for name, file in files.items()}


def _body(file: File) -> bytes:
    assert not isinstance(file, Source), "sources are read before anything starts"
    return file.encode() if isinstance(file, str) else file.content


def _write(root: Path, name: PurePosixPath, body: bytes) -> None:
    """Through no symlink; what has the name already gives way."""
    for parent in (*name.parents,)[-2::-1]:
        with suppress(FileExistsError):
            Spot(root, root / parent).make_folder()
    mode = 0o777 if body.startswith(PROGRAM) else 0o666
    folder = opened(root, root / name.parent, os.O_PATH | os.O_DIRECTORY)
    try:
        with suppress(FileNotFoundError):
            os.unlink(name.name, dir_fd=folder)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        with os.fdopen(os.open(name.name, flags, mode, dir_fd=folder), "wb") as file:
            file.write(body)
    finally:
        os.close(folder)


def _empty(root: Path) -> None:
    """All but what is mounted in it, and the way there."""
    mounts = _mounts(root)
    _clear(root, mounts, {parent for mount in mounts for parent in mount.parents})


def _clear(folder: Path, mounts: set[Path], ways: set[Path]) -> None:
    _unlock(folder)
    for path in list(folder.iterdir()):
        if path in mounts:
            continue
        if path in ways:
            _clear(path, mounts, ways)
        elif path.is_dir() and not path.is_symlink():
            _remove(path)
        else:
            path.unlink()


def _remove(doomed: Path) -> None:
    """Follows no link."""
    _unlock(doomed)
    if os.geteuid() != 0:
        for place, names, _ in os.walk(doomed):
            for name in names:
                _unlock(Path(place, name))
    shutil.rmtree(doomed)


def _unlock(folder: Path) -> None:
    """Only root may empty a folder whatever its mode is."""
    if os.geteuid() != 0 and not folder.is_symlink():
        folder.chmod(folder.stat().st_mode & 0o7777 | 0o700)


def _mounts(root: Path) -> set[Path]:
    """What is mounted in a folder, files too (proc(5), mountinfo: the fifth field)."""
    try:
        lines = MOUNTS.read_bytes().splitlines()
    except FileNotFoundError:  # no Linux
        return set()
    names = (re.sub(rb"\\([0-7]{3})", _unescaped, line.split(b" ")[4]) for line in lines)
    found = {Path(os.fsdecode(name)) for name in names}
    return {path for path in found if path.is_relative_to(root) and path != root}


def _unescaped(octal: re.Match[bytes]) -> bytes:
    return bytes([int(octal[1], 8)])
