"""Which commands work through a gateway."""

from perdure.cli.options import GatewayUse
from perdure.errors import Invalid
from perdure.settings.settings import load_settings


def check_gateway_use(use: GatewayUse, flag: str | None) -> None:
    """Check that a command works through the gateway that is set, or given as a flag.

    Raises Invalid, and SettingsError.
    """
    if use == "unrelated" and flag is not None:
        raise Invalid(
            "This command is about this machine and its servers, and no gateway takes part in it.",
            "Leave --gateway out.",
        )
    if use == "never" and (flag is not None or load_settings().gateway is not None):
        raise Invalid(
            "This command needs Temporal and the store themselves: it does not work through a "
            "gateway.",
            "Run it where PERDURE_STORE and TEMPORAL_ADDRESS are set, and PERDURE_GATEWAY is not.",
        )
