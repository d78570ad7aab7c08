"""The reports of git on a clone that failed, as sentences for the person who asked for it."""

import re
from typing import NamedTuple

MAX_QUOTED_CHARS = 300


class CloneFailed(Exception):
    """A repository was not cloned, and a person has to act; the text says how."""

    def __init__(self, code: str, sentence: str) -> None:
        super().__init__(sentence)
        self.code = code


class CloneUnavailable(CloneFailed):
    """A repository was not cloned, and time may mend it."""


class _Complaint(NamedTuple):
    """A pattern of what git says; `{…}` in the sentence is filled."""

    pattern: str
    code: str
    sentence: str
    is_passing: bool = False


_BRANCH = "The repository {url} has no branch or tag {branch!r}: name another one."
_PRIVATE = (
    "The repository {url} is not there, or it asks for a token: check the address, or name the "
    "secret that holds the token as `repository_token`."
)
_REFUSED = (
    "The server of {url} refuses the token in the secret {token}: set another one, which may read "
    "the repository."
)
_ABSENT = "There is no repository at {url}: check the address{and_token}."
_UNREACHABLE = (
    "The server of {url} does not answer ({quoted}): try again later, or check the address."
)

_FULL = "The worker's disk is full, so {url} was not cloned: its operator makes room."

_COMPLAINTS = (
    _Complaint(r"remote branch .* not found|not find remote branch", "branch_not_found", _BRANCH),
    _Complaint(r"could not read (username|password)", "repository_private", _PRIVATE),
    _Complaint(r"authentication failed|returned error: 40[13]", "token_refused", _REFUSED),
    _Complaint(
        r"repository .* not found|not exported|returned error: 404|not appear to be a git",
        "repository_not_found",
        _ABSENT,
    ),
    _Complaint(r"no space left|quota exceeded", "disk_full", _FULL),
    _Complaint(
        r"could not resolve|failed to connect|couldn't connect|unable to (connect|look up)"
        r"|timed out|returned error: (429|5\d\d)|early eof|hung up|connection (refused|reset)"
        r"|rpc failed|transfer closed|too slow",
        "repository_unreachable",
        _UNREACHABLE,
        is_passing=True,
    ),
)


def explain_failure(
    output: str, url: str, branch: str | None, token_name: str | None
) -> CloneFailed:
    """Explain what git says at its end; nothing of the URL's server is quoted but one line."""
    quoted = _quote(output)
    values = {
        "url": url,
        "branch": branch,
        "token": token_name,
        "quoted": quoted,
        "and_token": f", and what the token in the secret {token_name} opens" if token_name else "",
    }
    for complaint in _COMPLAINTS:
        if not re.search(complaint.pattern, output, re.IGNORECASE):
            continue
        code, sentence = complaint.code, complaint.sentence
        if code == "token_refused" and token_name is None:
            code, sentence = "repository_private", _PRIVATE
        kind = CloneUnavailable if complaint.is_passing else CloneFailed
        return kind(code, sentence.format(**values))
    return CloneFailed("clone_failed", f"The repository {url} could not be cloned: {quoted}.")


def _quote(output: str) -> str:
    """Return the last complaint of git, in a line of bounded length."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    fatal = [line for line in lines if line.startswith(("fatal:", "error:"))]
    last = (fatal or lines or ["git said nothing"])[-1]
    text = "".join(it for it in last.partition(": ")[2] or last if it.isprintable())
    return text[:MAX_QUOTED_CHARS].rstrip(".")
