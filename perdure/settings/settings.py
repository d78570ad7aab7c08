"""The settings, by precedence: flags, PERDURE_*, ./perdure.toml, the user's file, defaults.

Variables with a standard name are not settings: TEMPORAL_*, AWS_*, the model providers' keys.
"""

import os
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeAlias

import platformdirs
from pydantic import (
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

from perdure.errors import PerdureError

ENV_PREFIX = "PERDURE_"
SECRET_PREFIX = f"{ENV_PREFIX}SECRET_"
"""The prefix of the worker's environment variables that hold the values of secrets."""

SETTINGS_FILE = Path("perdure.toml")
USER_SETTINGS_FILE = platformdirs.user_config_path("perdure") / "perdure.toml"
SETTINGS_FILES = f"{SETTINGS_FILE} or {USER_SETTINGS_FILE}"

ModelName: TypeAlias = Annotated[str, Field(min_length=1, max_length=255)]
CallsPerMinute: TypeAlias = Annotated[float, Field(gt=0, le=6_000_000, allow_inf_nan=False)]


class SettingsError(PerdureError):
    """An unusable setting; the message names it, and where it is set."""


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
    """The user whose conversations and batches are used: a part of every key in the store."""
    task_queue: str = "perdure"
    """The task queue of Temporal that clients and workers share."""
    model: str | None = None
    """The model of agents for which none is named."""
    agent: dict[str, Any] = Field(default_factory=dict)
    """Fields of the agents of `run` and `chat`: the table [agent] of `perdure.toml`."""
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
    save_llm_messages: bool = True
    """Write the model's messages beside the log when a conversation closes."""
    sandbox: Literal["auto", "bubblewrap", "uid", "landlock", "none"] = "auto"
    """The sandbox for commands; `auto` is the strongest that works on the worker's machine."""
    sandbox_reads: tuple[Path, ...] = ()
    """Paths that commands can read besides the system's own files."""
    direct_models: bool = True
    """Call OpenAI-compatible servers directly; False calls every model through litellm."""
    model_rates: dict[ModelName, CallsPerMinute] = Field(default_factory=dict)
    """The rate limit of each model, over all workers of the task queue."""

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
    name = ".".join(map(str, error["loc"]))
    if error["type"] == "extra_forbidden":
        known = _join(set(Settings.model_fields))
        where = f"an argument, or in {SETTINGS_FILES}"
        return f"There is no setting {name!r} ({where}): the settings are {known}"
    return f"The setting {name!r} is not right: {error['msg']}"
