"""The files of the page, and what each view of it loads."""

import re
from collections.abc import Iterable
from posixpath import dirname, join, normpath

from perdure.gateway.page.files import PageFiles

IMPORT = re.compile(r"""(?:^|[;}\n])\s*(?:import|export)\b[^;'"(]*?["']([^"']+\.js)["']""")
DYNAMIC_IMPORT = re.compile(r"""\bimport\(["'`]([^"'`]+)["'`]\)""")
LINK = re.compile(r"""(?:href|src)="/page/\{digest\}/([^"]+)\"""")


def find_loaded(files: PageFiles, *views: str) -> set[str]:
    """Return the paths of all files that a browser loads for these modules, with the index."""
    loaded = {"index.html", *LINK.findall(files.files["index.html"].content.decode())}
    wanted = [path for path in (*loaded, *views) if path.endswith(".js")]
    while wanted:
        path = wanted.pop()
        loaded.add(path)
        imported = resolve(path, IMPORT.findall(files.files[path].content.decode()))
        wanted += [module for module in imported if module not in loaded]
    return loaded


def resolve(path: str, references: Iterable[str]) -> list[str]:
    """Return the paths that a file refers to."""
    return [normpath(join(dirname(path), reference)) for reference in references]
