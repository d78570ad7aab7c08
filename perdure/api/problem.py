"""The body of every error, as RFC 9457 has it."""

from perdure.events.base import Tolerant

PROBLEM_MEDIA_TYPE = "application/problem+json"


class Problem(Tolerant):
    """An error: `detail` says what is wrong, `hint` what to do.

    `code` is the stable name of the kind of error; `type` is `about:blank` and `title` the phrase
    of the HTTP status. `errors` has a line for each field that is wrong.
    """

    type: str = "about:blank"
    title: str
    status: int
    code: str
    detail: str
    hint: str = ""
    errors: tuple[str, ...] = ()
