"""Opens exported folders as the OpenHands SDK opens its own. Runs in the environment that has it.

Takes a folder with conversations, the id of one, and a file to write what was found in it to.
"""

import json
import sys
from pathlib import Path
from uuid import UUID

import openhands.tools  # noqa: F401 - they know their tools only by then
from openhands.sdk.conversation.impl.local_conversation import LocalConversation

if __name__ == "__main__":
    folder, name, taken = sys.argv[1:]
    conversation = LocalConversation(
        agent=None,
        workspace=f"{folder}/workspace",
        persistence_dir=folder,
        conversation_id=UUID(name),
        visualizer=None,
    )
    state = conversation.state
    facts = {
        "ids": [event.id for event in state.events],
        "shown": [event.id for event in state.view.events],
        "status": state.execution_status.value,
        "cost": state.stats.get_combined_metrics().accumulated_cost,
        "tools": [tool.name for tool in state.agent.tools],
        "model": state.agent.llm.model,
    }
    Path(taken).write_text(json.dumps(facts))
