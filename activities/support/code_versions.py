"""The versions of the user's modules that the turns of conversations use."""

from perdure.agent.spec import Agent
from perdure.storage.log.reader import LogReader
from perdure.user_modules import USER_MODULES

MAX_CODE_VERSIONS = 10_000
"""Conversations whose turns go on with the modules with which they began."""


class CodeVersions:
    """The version of the user's modules in the present turn of each conversation."""

    def __init__(self) -> None:
        self._by_prefix: dict[str, int] = {}

    def reload(self, spec: Agent, log: LogReader) -> bool:
        """Use the user's modules as they are now, for a turn that begins.

        Returns whether they have changed since this conversation's last turn on this worker.
        """
        USER_MODULES.use_client_folder(spec.code)
        before, now = self._by_prefix.pop(log.prefix, None), USER_MODULES.refresh()
        self._by_prefix[log.prefix] = now
        if len(self._by_prefix) > MAX_CODE_VERSIONS:
            del self._by_prefix[next(iter(self._by_prefix))]
        return before not in (None, now)

    def find(self, spec: Agent, log: LogReader) -> int:
        """Return the version with which the turn began; of one that is not known, as of now."""
        USER_MODULES.use_client_folder(spec.code)
        if log.prefix not in self._by_prefix:
            self.reload(spec, log)
        return self._by_prefix[log.prefix]

    def evict(self, log: LogReader) -> None:
        self._by_prefix.pop(log.prefix, None)
