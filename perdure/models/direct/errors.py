"""Conversion of what goes wrong with a direct request to model errors."""

import json
from collections.abc import Mapping
from typing import Any

from perdure.agent.spec import ModelSpec
from perdure.models.model import ModelError, ModelRefused, ModelUnavailable
from perdure.models.provider_errors import ProviderError, error_code, one_line, to_model_error


class BadStatus(Exception):
    """A response that is an error."""

    def __init__(self, status: int, text: str, headers: Mapping[str, str]) -> None:
        super().__init__(text)
        self.status, self.text, self.headers = status, text, headers

    @property
    def refuses_streaming(self) -> bool:
        """The request was refused only because it asked for a stream."""
        return self.status in (400, 422) and "stream" in self.text.lower()


def convert_exception(error: Exception, spec: ModelSpec, key_variable: str) -> ModelError:
    """Convert an exception of a request to a model error."""
    where = f" at {spec.api_base}" if spec.api_base else ""
    text = one_line(str(error)) or type(error).__name__
    if isinstance(error, BadStatus):
        return _convert_status(error, spec, key_variable)
    if isinstance(error, ConnectionError):
        detail = f"The connection to {spec.name}{where} failed ({text}): check both ends."
        return ModelUnavailable("connection", detail)
    if isinstance(error, TimeoutError):
        detail = f"{spec.name} gave no answer in {spec.timeout:g} s: raise its timeout."
        return ModelUnavailable("timeout", detail)
    if isinstance(error, json.JSONDecodeError | UnicodeDecodeError | RecursionError):
        detail = f"{spec.name} answered with malformed JSON ({text}): try again later."
        return ModelUnavailable("malformed", detail)
    reason = f"{type(error).__name__}: {text}"
    detail = f"The request to {spec.name} failed ({reason}): report it as a bug."
    return ModelRefused("internal", detail)


def _convert_status(error: BadStatus, spec: ModelSpec, key_variable: str) -> ModelError:
    body = _parse_body(error.text)
    return to_model_error(
        ProviderError(
            model=spec.name,
            text=str(body.get("message") or error.text or f"status {error.status}"),
            status=error.status,
            code=error_code(body),
            headers=error.headers,
            key_variable=key_variable,
        )
    )


def _parse_body(text: str) -> Mapping[str, Any]:
    """Parse the error object of a response: `{"error": {…}}`, `{"error": "…"}` or the object."""
    try:
        body = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    inner = body.get("error", body) if isinstance(body, Mapping) else {}
    return inner if isinstance(inner, Mapping) else {"message": inner}
