"""All that can be set: flags > PERDURE_* > ./perdure.toml > the user's file > defaults.

What has a standard name keeps it and is not here: TEMPORAL_*, AWS_*, the model providers' keys.
"""

import os
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

import platformdirs
from pydantic import Field, SecretStr, ValidationError
from pydantic_settings import (
    BaseSettings,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)
from pydantic_settings import SettingsError as Unreadable

PREFIX = "PERDURE_"
SECRET = f"{PREFIX}SECRET_"
"""Before the name of a secret, in the worker's variable that holds its value."""

FILE = Path("perdure.toml")
USER_FILE = platformdirs.user_config_path("perdure") / "perdure.toml"


Name: TypeAlias = Annotated[str, Field(min_length=1, max_length=255)]
CallsAMinute: TypeAlias = Annotated[float, Field(gt=0, le=6_000_000, allow_inf_nan=False)]


class SettingsError(ValueError):
    """A setting that cannot be used; the message says which, and where it is set."""


class Settings(BaseSettings):
    """`store` is `s3://bucket/prefix` or `file:///dir`; none means the embedded stack's.

    `search_attributes` says whether conversations can be found in Temporal by status, user and
    so on: `auto` where its namespace knows the attributes, or `off`. `payload_keys` encrypt what
    Temporal keeps: `ID:KEY[,ID:KEY ...]` or the path of a file of such; the first one encrypts, all
    decrypt. `secrets` is a folder with a file for each secret, called as the secret is; what is not
    there is looked for in PERDURE_SECRET_{NAME}. `sandbox` is where commands run: `auto` is the
    strongest that works on the worker's machine; they can read `sandbox_reads` beside the system's
    own files. `save_llm_messages` writes what was said beside the log of a conversation that
    closes. `model_rates` is how many calls a minute a model may get from all workers of the task
    queue together, by its name.
    """

    model_config = SettingsConfigDict(
        env_prefix=PREFIX, extra="forbid", frozen=True, toml_file=[USER_FILE, FILE]
    )

    store: str | None = None
    user: str = "local"
    task_queue: str = "perdure"
    model: str | None = None
    data: Path = Field(default_factory=lambda: platformdirs.user_data_path("perdure"))
    unsafe_store: bool = False
    search_attributes: Literal["auto", "off"] = "auto"
    payload_keys: SecretStr | None = None
    secrets: Path | None = None
    build_id: str | None = Field(default=None, min_length=1)
    save_llm_messages: bool = True
    sandbox: Literal["auto", "bubblewrap", "uid", "landlock", "none"] = "auto"
    sandbox_reads: tuple[Path, ...] = ()
    model_rates: dict[Name, CallsAMinute] = Field(default_factory=dict)

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


def load(**flags: Any) -> Settings:
    """The settings in force; flags that are None were not given.

    Raises SettingsError.
    """
    known = {f"{PREFIX}{name.upper()}" for name in Settings.model_fields}
    ours = (name for name in os.environ if name.startswith(PREFIX))
    strays = sorted(name for name in ours if name not in known and not name.startswith(SECRET))
    if strays:
        raise SettingsError(f"There is no setting {strays[0]}: the settings are {_names(known)}.")
    try:
        return Settings(**{name: value for name, value in flags.items() if value is not None})
    except ValidationError as error:
        raise SettingsError("; ".join(_fault(one) for one in error.errors())) from error
    except Unreadable as error:
        raise SettingsError(f"A variable {PREFIX}* is no JSON: {error}.") from error
    except (ValueError, RecursionError) as error:  # a file that is no TOML
        raise SettingsError(f"{FILE} or {USER_FILE} cannot be read: {error}") from error


def _names(names: set[str]) -> str:
    return ", ".join(sorted(names))


def _fault(error: Any) -> str:
    name = ".".join(map(str, error["loc"]))
    if error["type"] == "extra_forbidden":
        have = _names(set(Settings.model_fields))
        return f"There is no setting {name!r} (in {FILE} or {USER_FILE}): the settings are {have}"
    return f"The setting {name!r} is not right: {error['msg']}"
