"""Commands about named agents."""

from perdure.cli.options import OutputOptions, argument, completer
from perdure.cli.runner import command, new_named_group

app = new_named_group("List, show and check named agents.")

complete_agents = completer("complete_agents")


class AgentOptions(OutputOptions):
    """The options of a command about named agents, whose tools are run by workers alone."""

    runs_user_code = False
    through_gateway = "works"


@command(app, "commands.agents:list_agents", "ls")
class ListAgents(AgentOptions):
    """List the named agents: in files, your own in the store, and those of the settings.

    They are `agents/NAME.toml` and `agents/NAME.md` in the current folder and in that of your
    settings, what you have put by PUT /v1/agents/NAME, and the tables [agents.NAME].
    """


@command(app, "commands.agents:show_agent", "show")
class ShowAgent(AgentOptions):
    """Print a named agent as it would start, as a TOML file, with the source of each field.

    Behind a gateway, an agent of the installation is shown as far as its users may see it.
    """

    name: str = argument(
        "NAME",
        "The name; `default` is the agent of starts that name none.",
        autocompletion=complete_agents,
    )


@command(app, "commands.agents:check_agents", "check")
class CheckAgents(AgentOptions):
    """Check named agents, all of them by default.

    What is wrong is told with its file and line; the exit code is 2 then.
    """

    names: list[str] | None = argument(
        "[NAME]...", "The names of agents.", autocompletion=complete_agents
    )
