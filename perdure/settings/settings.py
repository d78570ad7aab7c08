"""The settings, by precedence: flags, PERDURE_*, ./perdure.toml, the user's file, defaults.

Variables with a standard name are not settings: TEMPORAL_*, AWS_*, the model providers' keys.
"""

import contextlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeAlias

import platformdirs
from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ModelWrapValidatorHandler,
    SecretStr,
    ValidationError,
    model_validator,
)
from pydantic_settings import (
    BaseSettings,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)
from pydantic_settings import SettingsError as SourceError

from perdure.settings.errors import SettingsError
from perdure.settings.experiments import Experiment, ExperimentName
from perdure.settings.log_format import LogFormat

ENV_PREFIX = "PERDURE_"
SECRET_PREFIX = f"{ENV_PREFIX}SECRET_"
"""The prefix of the worker's environment variables that hold the values of secrets."""

SETTINGS_FILE = Path("perdure.toml")
USER_SETTINGS_FILE = platformdirs.user_config_path("perdure") / "perdure.toml"
SETTINGS_FILES = f"{SETTINGS_FILE} or {USER_SETTINGS_FILE}"

RouteClass: TypeAlias = Literal["read", "write", "costly", "failure", "report"]
"""Classes of a gateway's routes, each with a rate of requests."""

TokenAlgorithm: TypeAlias = Literal[
    "RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"
]
"""Algorithms with a public key: one with a shared secret would let every verifier sign."""
ModelName: TypeAlias = Annotated[str, Field(min_length=1, max_length=255)]
CallsPerMinute: TypeAlias = Annotated[float, Field(gt=0, le=6_000_000, allow_inf_nan=False)]


class MemorySettings(BaseModel):
    """The memories of users, the same for all workers, clients and gateways of a store."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    embedding_model: ModelName | None = None
    """The model that makes vectors of memories: a name of litellm's, such as
    `openai/text-embedding-3-small`, or `python:module:attribute` for a function of texts that
    returns a vector for each. None searches by full text alone."""
    embedding_api_base: str | None = None
    """The URL of a server of your own for that model."""
    index: str | None = None
    """The place of the index that is made of the memories, `s3://bucket` or `file:///folder`, which
    all processes must reach; None means the store itself."""


def _read_switch(value: Any) -> bool:
    """Read a switch that everything but 0, false and no leaves on."""
    return str(value).strip().lower() not in ("0", "false", "no")


class Settings(BaseSettings):
    """The settings of a client or a worker. Raises SettingsError."""

    model_config = SettingsConfigDict(
        env_prefix=ENV_PREFIX,
        extra="forbid",
        frozen=True,
        toml_file=[USER_SETTINGS_FILE, SETTINGS_FILE],
    )

    store: str | None = None
    """`s3://bucket/prefix` or `file:///dir`; None selects the embedded stack's store."""
    user: str = "local"
    """The user whose conversations and batches are used: a part of every key in the store, and of
    every workflow's id but those of `local`."""
    task_queue: str = "perdure"
    """The task queue of Temporal that clients and workers share."""
    model: str | None = None
    """The model of agents for which none is named."""
    agent: dict[str, Any] = Field(default_factory=dict)
    """Fields of all agents that are started by options or by a name: the table [agent] of
    `perdure.toml`."""
    agents: dict[str, dict[str, Any]] = Field(default_factory=dict)
    """Named agents, as tables [agents.NAME] of fields. Users of a gateway may name them, and they
    are trusted, as the table [agent] is, which is `default`."""
    data: Path = Field(default_factory=lambda: platformdirs.user_data_path("perdure"))
    """The folder of the embedded stack, and of the workspaces on a worker's machine."""
    unsafe_store: bool = False
    """Use a store that fails the test of conditional writes: events may be lost or overwritten."""
    search_attributes: Literal["auto", "off"] = "auto"
    """Index conversations in Temporal by status, user and so on: `auto` does so if the namespace
    has our search attributes."""
    payload_keys: SecretStr | None = None
    """Keys that encrypt Temporal's payloads: `ID:KEY[,ID:KEY ...]` or the path of a file with
    such. The first key encrypts, all decrypt."""
    secret_keys: SecretStr | None = None
    """Keys that encrypt the secrets which users hand in (`perdure secret set`), written as those of
    `payload_keys`. Without any, users can hand none in."""
    secrets: Path | None = None
    """A folder with a file for each secret, named like it; other secrets are read from
    PERDURE_SECRET_{NAME}."""
    code: Path | None = None
    """A folder of modules for `module:attribute`, beside the current one and installed ones."""
    client_code: bool = False
    """Import modules from the folder of a client as well, as the worker of `perdure dev` does: only
    where clients may run any code on the worker's machine."""
    build_id: str | None = Field(default=None, min_length=1)
    """The version of the worker's code, for `perdure deploy`; None means a worker without one."""
    save_llm_messages: Annotated[bool, BeforeValidator(_read_switch)] = True
    """Write the model's messages (`llm_messages.json`) beside the log when a turn or a conversation
    ends. Only `0`, `false` and `no`, in any case, are off."""
    app_writers: tuple[str, ...] = ("local",)
    """The users whose conversations may change the values of `app:`, which the conversations of all
    users share; `*` stands for all users."""
    sandbox: Literal["auto", "bubblewrap", "uid", "landlock", "none"] = "auto"
    """The sandbox for commands; `auto` is the strongest that works on the worker's machine."""
    sandbox_reads: tuple[Path, ...] = ()
    """Paths that commands can read besides the system's own files."""
    repository_bytes: int = Field(default=2 << 30, ge=1)
    """Bytes on the disk that the clone of an agent's repository may take."""
    repository_timeout: float = Field(default=900.0, gt=0, le=6 * 3600, allow_inf_nan=False)
    """Seconds that the clone of an agent's repository may take."""
    direct_models: bool = True
    """Call OpenAI-compatible servers and Anthropic directly; False calls all through litellm."""
    metrics_address: str | None = Field(default=None, pattern=r"^\S+:[0-9]{1,5}$")
    """The address, `HOST:PORT`, at which a worker or a gateway offers its metrics to Prometheus.
    OpenTelemetry's own variables, OTEL_*, say what is sent to a collector."""
    log_format: LogFormat = "auto"
    """The log of a worker or a gateway: lines of `text`, or of `json`, with the ids of trace,
    conversation, user and batch; `auto` is text at a terminal, and JSON elsewhere."""
    heartbeat_interval: float = Field(default=0.25, ge=0.1, le=60, allow_inf_nan=False)
    """Seconds between two heartbeats of a step, which bound how often live text is renewed, and how
    long an interrupt takes whose workflow another process has; at most four fifths of an agent's
    `heartbeat_timeout`. A worker with more than five steps at work waits longer, up to 0.4 of that
    timeout."""
    replace_after: float = Field(default=60.0, ge=0, allow_inf_nan=False)
    """Seconds for which no worker could replay a workflow of a conversation until it is replaced by
    one that is opened from the log; 0 is for never."""
    model_rates: dict[ModelName, CallsPerMinute] = Field(default_factory=dict)
    """The rate limit of each model, over all workers of the task queue."""
    webhook_networks: tuple[str, ...] = ()
    """Networks of private addresses that webhooks may go to, such as 10.1.0.0/16; without any,
    they go to public addresses alone."""
    webhook_retry_time: float = Field(default=86_400.0, gt=0, le=7 * 86_400, allow_inf_nan=False)
    """Seconds for which an event is posted to a webhook again that does not take it."""
    webhook_retry_delay: float = Field(default=5.0, gt=0, le=3600, allow_inf_nan=False)
    """Seconds until the second attempt, about; each further one waits twice as long, and two hours
    at most."""
    memory: MemorySettings = MemorySettings()
    """The memories of users: the table [memory] of `perdure.toml`, or an object of JSON."""
    gateway: str | None = None
    """The address of a gateway, such as https://perdure.example.org: clients then need no other
    server, and no key but `gateway_key`."""
    gateway_key: SecretStr | None = None
    """The key of a user of that gateway, as `perdure key create` makes it."""
    gateway_models: tuple[str, ...] = ()
    """Models that users of a gateway may name besides `model` and those of the agents, as patterns
    such as `openai/*`."""
    gateway_secrets: tuple[str, ...] = ()
    """Secrets of the worker that agents of users of a gateway may have."""
    gateway_repositories: tuple[str, ...] = (
        "https://github.com/*",
        "https://gitlab.com/*",
        "https://bitbucket.org/*",
        "https://codeberg.org/*",
    )
    """Git repositories that users of a gateway may have cloned, as patterns: a worker reaches
    servers that they do not."""
    gateway_url: str | None = None
    """The address by which people reach a gateway, such as `https://perdure.example.org`, where it
    is not the one that a request names."""
    gateway_origins: tuple[str, ...] = ()
    """Other sites whose pages may call a gateway with a key, such as `https://example.org`."""
    gateway_issuer: str | None = None
    """The issuer of tokens (OpenID Connect) that a gateway accepts besides API keys."""
    gateway_audience: str | None = None
    """The audience that such a token must name."""
    gateway_algorithms: tuple[TokenAlgorithm, ...] = ("RS256", "ES256")
    """The algorithms by which such a token may be signed."""
    gateway_jwks: str | None = None
    """The address of the issuer's keys; by default the one that the issuer publishes."""
    gateway_user_claim: str = "sub"
    """The claim of such a token that is the user id."""
    gateway_scope_claim: str = "scope"
    """The claim that has the scopes: words such as `perdure:read`, or a list of them."""
    gateway_max_body: int = Field(default=8 * 1024 * 1024, ge=1024)
    """Bytes of the body of a request to a gateway, images included."""
    gateway_rates: dict[RouteClass, CallsPerMinute] = Field(default_factory=dict)
    """Requests a minute that a user may make to one gateway process: by default 3000 that `read`,
    600 that `write` and 60 that are `costly`; and an address 60 with wrong credentials (`failure`)
    and 30 reports of what a browser has forbidden the page (`report`)."""
    gateway_connections: int = Field(default=200, ge=1)
    """Streams, sockets and feeds that a user may have open at one gateway process."""
    gateway_trusted: bool = False
    """Trust the users of a gateway with all that the workers can do: any address, folder, program
    and code. `perdure dev` does, where all users are its owner."""
    gateway_client: str | None = None
    """The class of a gateway's client, as `module:attribute`: a subclass of `perdure.Client` that
    decides otherwise about users, limits and conversations."""
    gateway_temporal_ui: str | None = None
    """The address of Temporal's UI, such as `https://temporal.example.org`: the page of a gateway
    links to the workflows of conversations there."""

    experiments: dict[ExperimentName, Experiment] = Field(default_factory=dict)
    """Experiments, as tables [experiments.NAME]: a conversation that is started gets one of the
    `variants` of an agent, and a tag `experiment:NAME=VARIANT`."""

    gateway_openai_instructions: Literal["refuse", "ignore"] = "refuse"
    """What a gateway does with instructions of OpenAI's clients that differ from those with which
    their conversation has begun, such as a system prompt with the date."""
    gateway_ag_ui_tools: Literal["refuse", "ignore"] = "refuse"
    """What a gateway does with tools that an AG-UI client brings: an agent does not call them."""
    gateway_max_concurrent_conversations: Annotated[int, Field(ge=0)] = 3
    """Conversations of one user, started through gateways, that may work at once: one more suspends
    the least recently active, which goes on with its next message. 0 sets no limit."""

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - the library's signature
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        return init_settings, env_settings, TomlConfigSettingsSource(settings_cls)

    @model_validator(mode="wrap")
    @classmethod
    def _explain_errors(cls, values: Any, validate: ModelWrapValidatorHandler[Self]) -> Self:
        try:
            return validate(values)
        except ValidationError as error:
            raise SettingsError("; ".join(map(_describe_error, error.errors()))) from error


def load_settings(**flags: Any) -> Settings:
    """Load the settings; flags that are None are ignored. Raises SettingsError."""
    known = {f"{ENV_PREFIX}{name.upper()}" for name in Settings.model_fields}
    ours = {name for name in os.environ if name.startswith(ENV_PREFIX)}
    strays = sorted(name for name in ours - known if not name.startswith(SECRET_PREFIX))
    if strays:
        raise SettingsError(f"There is no setting {strays[0]}: the settings are {_join(known)}.")
    try:
        return Settings(**{name: value for name, value in flags.items() if value is not None})
    except SourceError as error:
        raise SettingsError(f"A variable {ENV_PREFIX}* is no JSON: {error}.") from error
    except (ValueError, RecursionError) as error:  # a file that is no TOML
        raise SettingsError(f"{SETTINGS_FILES} cannot be read: {error}") from error


def _join(names: set[str]) -> str:
    return ", ".join(sorted(names))


def _describe_error(error: Any) -> str:
    path = error["loc"]
    name = ".".join(map(str, path))
    if error["type"] == "extra_forbidden":
        known = _join(set(Settings.model_fields))
        where = f"an argument, or in {SETTINGS_FILES}"
        return f"There is no setting {name!r} ({where}): the settings are {known}"
    source = _find_source(path, error["input"])
    where = f" (in {source})" if source else ""
    return f"The setting {name!r} is not right{where}: {error['msg']}"


def _find_source(path: tuple[int | str, ...], value: Any) -> str | None:
    """Return the variable or the file that has this value at that path; None for an argument."""
    for source, table in _read_sources(str(path[0])):
        found: Any = table
        with contextlib.suppress(LookupError, TypeError):
            for key in path:
                found = found[key]
            if found == value:
                return source
    return None


def _read_sources(name: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield what sets a setting, the strongest first, with its name and its table."""
    import tomllib  # 3 ms that only an error takes

    variable = f"{ENV_PREFIX}{name.upper()}"
    if (text := os.environ.get(variable)) is not None:
        yield variable, {name: text}
        with contextlib.suppress(ValueError, RecursionError):
            yield variable, {name: json.loads(text)}
    for file in (SETTINGS_FILE, USER_SETTINGS_FILE):
        with contextlib.suppress(OSError, ValueError, RecursionError):
            yield str(file), tomllib.loads(file.read_text())
