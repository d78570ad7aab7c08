"""The options that describe an agent, which the commands that start one share.

Nothing slow is imported here: the help of every command reads these types.
"""

from pathlib import Path

from perdure.cli.options import Options, completer, option

CONDENSER_KINDS = (
    "default",
    "none",
    "recent",
    "window",
    "amortized",
    "observation_masking",
    "browser_masking",
    "llm_summary",
)
"""The kinds of condensers in `perdure.agent.condensers`; `default` is a pipeline of them."""

MODEL, LIMITS, CONTEXT = "Model", "Limits", "Instructions and context"
TOOLS, WORKSPACE, WHOLE = "Tools and permissions", "The repository", "The whole agent"
"""The headings of an agent's options in a help."""


class AgentFieldOptions(Options):
    """The options that describe an agent apart from its model's name; None changes nothing."""

    api_base: str | None = option(
        "The URL of a server of your own, which needs no key.", metavar="URL", panel=MODEL
    )
    temperature: float | None = option("The sampling temperature of the model.", min=0, panel=MODEL)
    reasoning_effort: str | None = option(
        "How long the model reasons: none, minimal, low, medium or high.",
        metavar="LEVEL",
        panel=MODEL,
    )
    max_output_tokens: int | None = option(
        "The maximum of tokens of one response.", min=1, panel=MODEL
    )
    fallbacks: list[str] | None = option(
        "A model to call when the first one fails; may be repeated.",
        "--fallback",
        metavar="MODEL",
        panel=MODEL,
    )
    max_iterations: int | None = option(
        "The maximum of responses of the model in a turn.", min=1, panel=LIMITS
    )
    max_budget: float | None = option(
        "The maximum of US dollars for the conversation.", min=0, panel=LIMITS
    )
    deadline: str | None = option(
        "The end of the time: 90m, 2h or 1d from now, or an ISO date.", panel=LIMITS
    )
    system_prompt: str | None = option(
        "Replace the system prompt of perdure: a text, or @FILE.", metavar="TEXT", panel=CONTEXT
    )
    instructions: str | None = option(
        "Add to the system prompt: a text, or @FILE.", metavar="TEXT", panel=CONTEXT
    )
    skills: list[Path] | None = option(
        "A folder of skills; may be repeated.", "--skills", metavar="DIR", panel=CONTEXT
    )
    condenser: str | None = option(
        f"One of {', '.join(CONDENSER_KINDS)}, or module:attribute.", metavar="KIND", panel=CONTEXT
    )
    condenser_max_size: int | None = option(
        "The number of events beyond which they are condensed; 120 by default.",
        metavar="N",
        min=1,
        panel=CONTEXT,
    )
    condenser_keep_first: int | None = option(
        "The number of first events that are never condensed; 4 by default.",
        metavar="N",
        min=0,
        panel=CONTEXT,
    )
    tools: str | None = option("Names or module:attribute, separated by commas.", panel=TOOLS)
    mcp: Path | None = option(
        'A file of MCP servers, as of Claude Desktop: {"mcpServers": {name: ...}}.',
        metavar="FILE",
        panel=TOOLS,
    )
    workspace: Path | None = option(
        "The folder in which the agent works; by default, a new one of its own.",
        "-w",
        "--workspace",
        metavar="DIR",
        panel=TOOLS,
    )
    network: bool | None = option(
        "Allow commands to use the network: every host that this machine can reach.",
        "--network/--no-network",
        panel=TOOLS,
    )
    confirm: str | None = option(
        "The actions that wait for you: never, always, risky, or risky:LOW|MEDIUM|HIGH.",
        metavar="POLICY",
        panel=TOOLS,
    )
    secrets: list[str] | None = option(
        "The name of a secret of yours (`perdure secret set`) or of the worker; may be repeated.",
        "--secret",
        metavar="NAME",
        panel=TOOLS,
    )
    repository: str | None = option(
        "A git repository to clone into the workspace before the first answer.",
        metavar="URL",
        panel=WORKSPACE,
    )
    branch: str | None = option(
        "The branch or tag of the repository.", metavar="NAME", panel=WORKSPACE
    )
    repository_token: str | None = option(
        "The name of the secret that opens the repository.", metavar="NAME", panel=WORKSPACE
    )
    git_user_name: str | None = option(
        "The name of the author of commits.", metavar="NAME", panel=WORKSPACE
    )
    git_user_email: str | None = option(
        "The address of the author of commits.", metavar="ADDRESS", panel=WORKSPACE
    )
    metadata: list[str] | None = option(
        "A pair that goes with each call of the model; may be repeated.",
        "--metadata",
        metavar="KEY=VALUE",
        panel=WHOLE,
    )
    app_name: str | None = option(
        "The application that the conversation belongs to.", metavar="NAME", panel=WHOLE
    )
    parent: str | None = option(
        "The id of the conversation from which this one is started.", metavar="ID", panel=WHOLE
    )
    hidden: bool | None = option(
        "Leave the conversation out of lists.", "--hidden/--not-hidden", panel=WHOLE
    )
    agent: str | None = option(
        "The name of an agent: agents/NAME.toml or .md, one of yours in the store, or "
        "[agents.NAME] in perdure.toml.",
        metavar="NAME",
        panel=WHOLE,
        autocompletion=completer("complete_agents"),
    )
    agent_file: Path | None = option(
        "A TOML file of an agent, as `perdure show ID --agent` prints it.",
        metavar="FILE",
        panel=WHOLE,
    )
    config: list[str] | None = option(
        "Set any field, such as limits.max_iterations=50; may be repeated. It overrides the file.",
        *("-c", "--config"),
        metavar="KEY=VALUE",
        panel=WHOLE,
    )
    tags: list[str] | None = option(
        "A tag of the conversation; may be repeated.", "--tag", metavar="TAG", panel=WHOLE
    )


class ModelOptions(Options):
    """The options that choose a model."""

    model: str | None = option(
        "A name of litellm, such as openai/gpt-5; scripted:FILE or scripted:FILE#NAME; or the "
        "name of a script in --script.",
        panel=MODEL,
    )
    script: Path | None = option("Play this script as the model.", panel=MODEL)


class AgentOptions(AgentFieldOptions, ModelOptions):
    """The options that describe an agent; None leaves the agent's default."""
