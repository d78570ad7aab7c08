"""Setting up the workspace of a sample before its agent sees it."""

import os
from collections.abc import Callable
from contextlib import suppress
from errno import EEXIST, EINVAL, EISDIR, ELOOP, ENAMETOOLONG, ENOTDIR
from pathlib import Path, PurePosixPath

from perdure.activities.batch.command import CommandContext, CommandResult, run_command
from perdure.evaluation.sample import File, Sample, SourceFile
from perdure.sandbox.safe_path import SafePath, open_beneath
from perdure.storage.snapshots.folders import make_writable, remove_tree, to_thread_shielded

MAX_RECORDED_CHARS = 4_000
"""Length limit of the recorded output, of which the end is kept."""

MAX_ERROR_CHARS = 2_000
"""Length limit of the output in an error."""

UNUSABLE_NAME_ERRNOS = (ENOTDIR, EISDIR, EEXIST, ELOOP, ENAMETOOLONG, EINVAL)
"""Errors that only another file name mends."""

SHEBANG = b"#!"

MOUNTINFO = Path("/proc/self/mountinfo")


class SetUpFailed(Exception):
    """A sample cannot be set up; the text is for the author of the dataset."""


async def set_up(
    sample: Sample, context: CommandContext, report: Callable[[str], None], seconds: float
) -> str:
    """Replace the content of the folder by the sample's files, and run its setup command.

    Returns the end of the output; `report` gets it meanwhile. The command is ended after `seconds`.
    Raises SetUpFailed; and ToolFailed, SandboxUnusable and OSError if the machine is at fault.
    """
    await to_thread_shielded(_write_files, context.folder, sample)
    await to_thread_shielded(context.sandbox.prepare, context.folder)
    if not sample.setup or not sample.setup.strip():
        return ""
    result = await run_command(sample.setup, context, seconds, report)
    if result.exit_code != 0:
        raise SetUpFailed(_explain_failure(sample, result, seconds))
    return result.output[-MAX_RECORDED_CHARS:]


def _explain_failure(sample: Sample, result: CommandResult, seconds: float) -> str:
    if result.exit_code is None:
        reason = f"took over {seconds:g} seconds"
    elif result.exit_code < 0:
        reason = f"was ended by signal {-result.exit_code}"
    else:
        reason = f"ended with exit code {result.exit_code}"
    end = result.output.strip()[-MAX_ERROR_CHARS:]
    output = f"The end of its output: {end}" if end else "It printed nothing."
    return f"The `setup` of the sample {sample.id!r} {reason}: mend it in the dataset. {output}"


def _write_files(folder: Path, sample: Sample) -> None:
    root = folder.resolve(strict=True)
    _empty_folder(root)
    bodies = {name: _file_body(file) for name, file in sample.files.items()}
    for name, body in bodies.items():
        try:
            _write_file(root, PurePosixPath(name), body)
        except OSError as error:
            if error.errno not in UNUSABLE_NAME_ERRNOS:
                raise
            raise SetUpFailed(
                f"The file {name!r} of the sample {sample.id!r} cannot be written "
                f"({os.strerror(error.errno)}): give it another name in the dataset."
            ) from error


def _file_body(file: File) -> bytes:
    assert not isinstance(file, SourceFile), "sources are read before anything starts"
    return file.encode() if isinstance(file, str) else file.content


def _write_file(root: Path, name: PurePosixPath, body: bytes) -> None:
    """Write a file, following no symlink and replacing one of the same name."""
    for parent in (*name.parents,)[-2::-1]:
        with suppress(FileExistsError):
            SafePath(root, root / parent).make_folder()
    mode = 0o777 if body.startswith(SHEBANG) else 0o666
    folder = open_beneath(root, root / name.parent, os.O_PATH | os.O_DIRECTORY)
    try:
        with suppress(FileNotFoundError):
            os.unlink(name.name, dir_fd=folder)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        with os.fdopen(os.open(name.name, flags, mode, dir_fd=folder), "wb") as file:
            file.write(body)
    finally:
        os.close(folder)


def _empty_folder(root: Path) -> None:
    """Remove everything but mounts and the folders that lead to them."""
    mounts = _mounts_in(root)
    _clear_around_mounts(root, mounts, {parent for mount in mounts for parent in mount.parents})


def _clear_around_mounts(folder: Path, mounts: set[Path], parents: set[Path]) -> None:
    make_writable(folder)
    for path in list(folder.iterdir()):
        if path in mounts:
            continue
        if path in parents:
            _clear_around_mounts(path, mounts, parents)
        elif path.is_dir() and not path.is_symlink():
            make_writable(path)
            remove_tree(path)
        else:
            path.unlink()


def _mounts_in(root: Path) -> set[Path]:
    """Return the mounts in a folder, files too (proc(5), mountinfo: the fifth field)."""
    try:
        lines = MOUNTINFO.read_bytes().splitlines()
    except FileNotFoundError:  # no Linux
        return set()
    names = (line.split(b" ")[4].decode("unicode_escape") for line in lines)  # \040 is a blank
    mounts = {Path(os.fsdecode(name.encode("latin-1"))) for name in names}
    return {path for path in mounts if path.is_relative_to(root) and path != root}
