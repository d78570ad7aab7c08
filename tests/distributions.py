"""A package that looks installed: modules and entry points in a folder on the path."""

import importlib
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from perdure.models.router import cached_model
from perdure.references import find_entry_points

Points = dict[str, dict[str, str]]
"""The entry points of each group, by name."""


@contextmanager
def installed(folder: Path, modules: dict[str, str], points: Points) -> Iterator[None]:
    """Have modules (file name to source) and entry points installed while inside."""
    info = folder / f"{folder.name}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {folder.name}\nVersion: 1.0\n")
    sections = (
        "\n".join([f"[{group}]", *(f"{name} = {value}" for name, value in named.items())])
        for group, named in points.items()
    )
    (info / "entry_points.txt").write_text("\n".join(sections))
    for name, source in modules.items():
        (folder / name).write_text(source)
    before = set(sys.modules)
    sys.path.append(str(folder))
    _forget()
    try:
        yield
    finally:
        sys.path.remove(str(folder))
        for name in {Path(name).stem for name in modules} & (set(sys.modules) - before):
            del sys.modules[name]
        _forget()


def _forget() -> None:
    caches: tuple[Callable[[], None], ...] = (
        importlib.invalidate_caches,
        find_entry_points.cache_clear,
        cached_model.cache_clear,
    )
    for clear in caches:
        clear()
