"""Agents by name, for programs: with Temporal and the store, and through a gateway."""

import pytest

from perdure import Invalid, Limits
from perdure.storage.log.state import read_agent
from perdure.storage.user_agents import UserAgents
from tests.client.contract.clients import Clients
from tests.harness import text_answer


async def test_an_agent_is_started_by_its_name_alone_or_with_other_fields(
    clients: Clients,
) -> None:
    harness = clients.harness
    spec = harness.spec(text_answer("It is 5."))
    own = UserAgents(harness.client.store, "anna")
    await own.save("adder", spec.model_dump(mode="json", exclude_unset=True))
    async with harness.worker():
        started = await clients.anna.start("2 + 3?", "adder")
        assert (await started.result()).text == "It is 5."
        changed = {"extends": "adder", "limits": Limits(max_iterations=3), "tools": ["finish"]}
        other = await clients.anna.start("2 + 3?", changed)
        await other.result()
    agent = await read_agent(other.log, await other.state())
    assert agent is not None
    assert (agent.agent, agent.limits.max_iterations, agent.tools) == ("adder", 3, ("finish",))
    assert (agent.sources["model.name"], agent.sources["tools"]) == (
        "the user's agent adder",
        "start",
    )


async def test_what_is_no_agent_is_refused(clients: Clients) -> None:
    own = UserAgents(clients.harness.client.store, "anna")
    await own.save("mine", {"model": "scripted:x"})
    for spec in ("nobody", {"extends": "mine", "modle": "x"}, {"model": "m", "extends": 5}):
        with pytest.raises(Invalid):
            await clients.anna.start("?", spec)
    with pytest.raises(Invalid, match="no agent 'mine'"):
        await clients.ben.start("?", "mine")
