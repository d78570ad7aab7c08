"""Sessions of the official client over `perdure acp`, with Temporal and a store under it."""

from pathlib import Path

import pytest

from tests.acp.editor import start_editor, write_script
from tests.cli.command import Perdure, tool_call_answer

pytestmark = pytest.mark.long


async def test_a_prompt_is_told_of_and_answered(perdure: Perdure, tmp_path: Path) -> None:
    model = write_script(
        tmp_path,
        {
            **tool_call_answer("terminal", command="echo 5"),
            "content": "I add.",
            "reasoning_content": "Two numbers.",
        },
        {"content": "It is 5."},
        {"content": "It is 6."},
    )
    async with start_editor(perdure.env, "--model", model) as run:
        session = await run.agent.new_session(cwd=str(tmp_path))
        done = await run.prompt(session.session_id, "2 + 3?")
        assert done.stop_reason == "end_turn"
        assert run.editor.text() == "I add.It is 5."
        done = await run.prompt(session.session_id, "3 + 3?")
        assert (done.stop_reason, run.editor.text()) == ("end_turn", "I add.It is 5.It is 6.")
