"""What a server of one's own gets beside the request: a key, and headers that identify the call."""

from urllib.parse import urlsplit

from perdure.agent.spec import ModelSpec
from perdure.models.model import KEY_HEADER, NUMBER_HEADER, PURPOSE_HEADER, ModelRefused, Request

PLACEHOLDER_KEY = "no-key"
"""The key sent to a server without keys: litellm and openai refuse an empty one."""


def check_address(spec: ModelSpec) -> None:
    """Raise ModelRefused if the `api_base` of the model is no address."""
    if spec.api_base is not None and not is_address(spec.api_base):
        address = f"The api_base {spec.api_base!r} of {spec.name}"
        example = "http://HOST" if spec.name.startswith("anthropic/") else "http://HOST/v1"
        raise ModelRefused("bad_request", f"{address} is no address: write it like {example}.")


def is_address(text: str) -> bool:
    try:
        address = urlsplit(text)
        return address.scheme in ("http", "https") and bool(address.hostname) and address.port != 0
    except ValueError:  # a port that is no number
        return False


def perdure_headers(request: Request) -> dict[str, str]:
    """Return the headers for a server of one's own; providers at their own addresses get none."""
    if request.model.api_base is None:
        return {}
    number = "" if request.number is None else str(request.number)
    headers = {PURPOSE_HEADER: request.purpose, NUMBER_HEADER: number, KEY_HEADER: request.key}
    return {name: value for name, value in headers.items() if value}
