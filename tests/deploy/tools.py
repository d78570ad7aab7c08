"""Running the tools of `make deploy-check`."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.deploy.environment import DEPLOY

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "deploy"
READER = Path(__file__).with_name("tool_reader.py")

needs_tools = pytest.mark.skipif(
    not DEPLOY.ready(), reason="NOT CHECKED: the tools are not installed: `make deploy-check`"
)


def ask_tool(*words: str, given: Any = None) -> Any:
    """Return what the reader of the tools prints, as JSON; `given` is its input."""
    done = run_tool(str(DEPLOY.python), "-I", str(READER), *words, given=json.dumps(given))
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def run_tool(*command: str, given: str = "") -> subprocess.CompletedProcess[str]:
    """Run a program of the environment of the tools, in deploy/."""
    alone = {"PATH": f"{DEPLOY.place / 'bin'}{os.pathsep}{os.environ['PATH']}"}
    return subprocess.run(
        command, cwd=FOLDER, env=alone, input=given, capture_output=True, text=True, check=False
    )
