"""`python -m reliability.wheel`: install the wheel beside other packages and use it as a user does.

The wheel is built and installed into an empty environment together with `Events` and
`llama-index-workflows`, which bring top-level packages that are called as rooms of ours are. From a
folder that has `tools/`, `models/`, `storage/`, `settings.py` and `events.py` of its own, it runs
`perdure dev`, a conversation with a tool of that folder, a batch over a dataset of that folder and
the README's Python program, and checks that program by `mypy --strict`.
"""

import contextlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
PROJECT = Path(__file__).with_name("project")
NEIGHBOURS = ("Events", "llama-index-workflows", "mypy")
START_TIMEOUT = 120
"""Seconds until `perdure dev` has started its servers and its worker."""


class Failed(Exception):
    """A command of the check that did not do what it should."""


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="perdure-wheel-") as folder:
        try:
            check(Path(folder))
        except Failed as error:
            print(f"FAILED: {error}")
            return 1
    print("The wheel works in an empty environment, beside packages and folders of the same names.")
    return 0


def check(folder: Path) -> None:
    binaries = install(build(folder / "dist"), folder / "environment")
    project = shutil.copytree(PROJECT, folder / "project")
    model = f"scripted:{project / 'script.json'}"
    (project / "main.py").write_text(documented_program("docs/python.md", "Client.connect", model))
    (project / "script.py").write_text(documented_program("README.md", "perdure.run", model))
    environment = {
        "HOME": str(folder),
        "PATH": f"{binaries}:{os.environ['PATH']}",
        "PERDURE_DATA": str(folder / "data"),
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    }

    def run(*command: str, says: str) -> None:
        print("$", *command, flush=True)
        ended = subprocess.run(
            command,
            cwd=project,
            env=environment,
            check=False,
            capture_output=True,
            text=True,
            timeout=300,
        )
        if ended.returncode != 0 or says not in ended.stdout:
            raise Failed(
                f"{' '.join(command)} exited {ended.returncode} and did not print {says!r}:\n"
                f"{ended.stdout}{ended.stderr}"
            )

    run("mypy", "--strict", "main.py", "script.py", "tools/weather.py", says="Success")
    page = "from perdure.gateway.page.files import load_files; print(*load_files().files)"
    run("python", "-c", page, says="vendor/marked/marked.esm.js")
    with dev(binaries, project, environment):
        tools = "tools.weather:weather,finish"
        run("perdure", "run", "Rain?", "--model", model, "--tools", tools, says="rains in Oslo")
        run("perdure", "batch", "run", "rain.toml", says="rain")
        run("perdure", "batch", "results", "rain", says="includes")
        run("python", "main.py", says="rains in Oslo")
        run("python", "script.py", says="rains in Oslo")
        run("perdure", "ls", says="finished")


def build(target: Path) -> Path:
    """Build the wheel through the sdist, as PyPI has both."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(target)]
    subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    [wheel] = target.glob("*.whl")
    return wheel


def install(wheel: Path, environment: Path) -> Path:
    """Install the wheel and its neighbours, in the versions of our lock file where it has them."""
    venv.create(environment, symlinks=True, with_pip=True)
    pins = re.findall(r"^\S+==\S+(?: ;[^\\\n]+)?", (ROOT / "requirements.lock").read_text(), re.M)
    constraints = environment / "constraints.txt"
    constraints.write_text("\n".join(pins))
    pip: list[str | Path] = [
        environment / "bin" / "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
    ]
    packages = [f"perdure[dev] @ {wheel.as_uri()}", *NEIGHBOURS]
    subprocess.run([*pip, "--constraint", constraints, *packages], check=True)
    return environment / "bin"


def documented_program(page: str, call: str, model: str) -> str:
    """The page's first program with the call, with a scripted model in place of a provider's."""
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), re.S)
    program = next(block for block in blocks if call in block)
    return re.sub(r'"openai/[^"]+"', repr(model), program)


@contextlib.contextmanager
def dev(binaries: Path, project: Path, environment: dict[str, str]) -> Iterator[None]:
    """Run `perdure dev` for as long as it is used."""
    print("$ perdure dev", flush=True)
    log = project.parent / "dev.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [binaries / "perdure", "dev"],
            cwd=project,
            env=environment,
            stdout=output,
            stderr=output,
        )
    try:
        deadline = time.monotonic() + START_TIMEOUT
        while "worker" not in log.read_text() or not any(project.parent.glob("data/**/stack.json")):
            if process.poll() is not None or time.monotonic() > deadline:
                raise Failed(f"perdure dev did not start:\n{log.read_text()}")
            time.sleep(0.2)
        yield
    finally:
        process.terminate()
        process.wait(60)


if __name__ == "__main__":
    sys.exit(main())
