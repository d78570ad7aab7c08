"""The tests of a module, nearest first: by name, then by how many imports lie between."""

import ast
from collections import deque
from pathlib import Path


class Imports:
    """The modules of the product and of the tests, and which of them import which."""

    def __init__(self, tree: Path, modules: list[str]) -> None:
        names = {_dotted(path): path for path in modules}
        self._importers: dict[str, set[str]] = {path: set() for path in modules}
        for path in modules:
            for imported in _imported((tree / path).read_text()):
                if imported in names:
                    self._importers[names[imported]].add(path)

    def distances(self, module: str) -> dict[str, int]:
        """Count the imports between a module and each module that needs it."""
        distances = {module: 0}
        waiting = deque([module])
        while waiting:
            path = waiting.popleft()
            for importer in self._importers.get(path, ()):
                if importer not in distances:
                    distances[importer] = distances[path] + 1
                    waiting.append(importer)
        return distances


def _dotted(path: str) -> str:
    dotted = path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    outside = dotted.split(".")[0] in ("activities", "storage", "workflows", "worker")
    return f"perdure.{dotted}" if outside else dotted


def _imported(source: str) -> set[str]:
    imported = set()
    for statement in ast.parse(source).body:
        if isinstance(statement, ast.ImportFrom):
            module = str(statement.module)
            imported |= {module, *(f"{module}.{name.name}" for name in statement.names)}
        elif isinstance(statement, ast.Import):
            imported |= {name.name for name in statement.names}
    return imported
