"""Commands that read, write and delete files."""

import re
from collections.abc import Iterable, Iterator

from tools.risk.call import Call, Made, Rule, Script, Step, group, options
from tools.risk.finding import high, medium
from tools.risk.marks import shown
from tools.risk.places import Places, deleting, reading, writing

_TARGET = "-t --target-directory -S --suffix -m --mode -o --owner -g --group"


def _written(places: Places, names: Iterable[str]) -> Iterator[Step]:
    for name in names:
        yield from writing(places, name)


def _all(call: Call) -> Iterator[Step]:
    yield from _written(call.places, options(call.args, "-s -m -d -r -t --size --mode").operands)


def _tee(call: Call) -> Iterator[Step]:
    for name in options(call.args).operands:
        yield from writing(call.places, name)
        yield Made(name, call.stdin or "")


def _last(call: Call) -> Iterator[Step]:
    """`cp`, `mv`, `install`: into the last operand, or into the directory of `-t`."""
    given = options(call.args, _TARGET)
    directories = given.of("-t", "--target-directory")
    yield from _written(call.places, directories or given.operands[-1:])
    sources = given.operands if directories else given.operands[:-1]
    if len(given.operands) == 2:
        yield Made(given.operands[1], call.content(given.operands[0]))
    if call.name == "mv":
        for name in sources:
            yield from deleting(call.places, name, recursive=False)


def _link(call: Call) -> Iterator[Step]:
    given = options(call.args, "-t -S --target-directory --suffix")
    directories = given.of("-t", "--target-directory")
    alone = len(given.operands) == 1
    yield from _written(call.places, directories or ([] if alone else given.operands[-1:]))
    for name in given.operands if directories or alone else given.operands[:-1]:
        if any(call.places.kind(path) == "outside" for path in call.places.resolved(name)):
            yield medium(f"It makes a link that leads out of the workspace: {shown(name)}.")


def _rm(call: Call) -> Iterator[Step]:
    given = options(call.args)
    recursive = given.has("-r", "-R", "--recursive")
    for name in given.operands:
        yield from deleting(call.places, name, recursive=recursive)


def _shred(call: Call) -> Iterator[Step]:
    for name in options(call.args, "-n -s --iterations --size").operands:
        yield from deleting(call.places, name, recursive=False)
        yield medium(f"It destroys {shown(name)} for good.")


def _chmod(call: Call) -> Iterator[Step]:
    mode = next(
        (
            arg
            for arg in call.args
            if re.fullmatch(r"[-+=ugoarwxXst,0-7]+", arg) and arg not in ("-R", "-v", "-c", "-f")
        ),
        "",
    )
    yield medium("It changes who may read, change or run files.")
    if re.search(r"[ugoa]*[+=][rwxX]*s|^0*[2-7][0-7]{3}$", mode):
        yield high("It lets a program run with its owner's rights.")
    names = (name for name in options(call.args).operands if name != mode)
    yield from _written(call.places, names)


def _chown(call: Call) -> Iterator[Step]:
    yield medium("It changes the owner of files.")
    yield from _written(call.places, options(call.args, "--from --reference").operands[1:])


def _dd(call: Call) -> Iterator[Step]:
    for arg in call.args:
        key, _, name = arg.partition("=")
        if key == "of":
            yield from writing(call.places, name)
        elif key == "if":
            yield from reading(call.places, name)


def _sed(call: Call) -> Iterator[Step]:
    given = options(call.args, "-e -f --expression --file")
    scripts = given.of("-e", "--expression")
    names = given.operands
    if not scripts and not given.of("-f", "--file"):
        scripts, names = list(names[:1]), names[1:]
    if given.has("-i", "--in-place"):
        yield from _written(call.places, names)
    for script in scripts:
        for name in re.findall(r"(?:^|[\s;/0-9$}gpI])w\s+([^\s;}]+)", script):
            yield from writing(call.places, name)
        for text in re.findall(r"(?:^|[;\n{]|\d|\$)\s*e\s+(.+)", script):
            yield Script(text)


def _tar(call: Call) -> Iterator[Step]:
    letters = call.args[0].lstrip("-") if call.args and call.args[0][:2] != "--" else ""
    given = options(call.args, "-C -f -T -X --directory --file --to-command --checkpoint-action")
    yield from _written(call.places, given.of("-C", "--directory") or ["."])
    yield from (Script(text) for text in given.of("--to-command"))
    for action in given.of("--checkpoint-action"):
        yield Script(action.removeprefix("exec="))
    if given.has("-P", "--absolute-names") or "P" in letters:
        yield high("It unpacks files to wherever the archive says.")
    if given.has("-c", "--create", "-r", "-u", "--append", "--update") or re.search(
        "[cru]", letters
    ):
        archives = given.of("-f", "--file")
        if not archives and "f" in letters:
            archives = list(call.args[1:2])
        yield from _written(call.places, (name for name in archives if name != "-"))


def _option(*names: str) -> Rule:
    """A command that writes where these options say."""

    def rule(call: Call) -> Iterator[Step]:
        yield from _written(call.places, options(call.args, " ".join(names)).of(*names))

    return rule


def _first(call: Call) -> Iterator[Step]:
    yield from _written(call.places, options(call.args, "-x -i -n").operands[:1])


def _seven_zip(call: Call) -> Iterator[Step]:
    yield from _written(call.places, (arg[2:] for arg in call.args if arg.startswith("-o")))


def _rsync(call: Call) -> Iterator[Step]:
    given = options(call.args, "-e -f --rsh --exclude --include --filter")
    yield from (Script(text) for text in given.of("-e", "--rsh"))
    remote = [bool(re.match(r"[^/]*:|rsync://", name)) for name in given.operands]
    if remote and remote[-1]:
        yield high("It sends files to another machine.")
        return
    if any(remote):
        yield medium("It fetches files from another machine.")
    yield from _written(call.places, given.operands[-1:] if len(given.operands) > 1 else ())
    if any(flag.startswith("--del") for flag in given.flags):
        yield medium("It deletes what the other side does not have.")


def _editor(call: Call) -> Iterator[Step]:
    yield from _written(call.places, options(call.args, "-c -S -u --cmd").operands)
    for text in options(call.args, "-c --cmd").of("-c", "--cmd"):
        if text.lstrip(":%").startswith("!"):
            yield Script(text.lstrip(":%!"))


def _history(call: Call) -> Iterator[Step]:
    if options(call.args, "-d").has("-c", "-d", "-w"):
        yield high("It wipes the shell's history.")


def _mount(call: Call) -> Iterator[Step]:
    if call.args and call.args[0] not in ("-l", "--version"):
        yield high("It changes what the machine's directories show.")


FILES: dict[str, Rule] = {
    **group("touch mkdir truncate mkfifo mknod sponge", _all),
    **group("gzip gunzip bzip2 bunzip2 xz unxz zstd dos2unix", _all),
    "tee": _tee,
    **group("cp mv install", _last),
    **group("rm rmdir unlink srm trash rimraf", _rm),
    **group("ln link", _link),
    "shred": _shred,
    "chmod": _chmod,
    **group("chown chgrp chattr setfacl", _chown),
    "dd": _dd,
    **group("sed gsed", _sed),
    **group("tar bsdtar gtar", _tar),
    "unzip": _option("-d"),
    **group("7z 7za", _seven_zip),
    "cpio": _option("-D", "--directory"),
    "zip": _first,
    "sort": _option("-o", "--output"),
    **group("gcc g++ cc c++ clang ld rustc pandoc", _option("-o")),
    "patch": _option("-d", "-o", "--directory", "--output"),
    "rsync": _rsync,
    **group("vi vim nvim ex ed nano emacs", _editor),
    "history": _history,
    **group("mount umount", _mount),
}
