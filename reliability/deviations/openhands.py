"""Deviations from OpenHands' agent server."""

from reliability.deviations.deviation import Deviation, Surface

SOCKET = "perdure/gateway/openhands/socket.py"
VIEW = "perdure/gateway/openhands/view.py"
INFO = "perdure/gateway/openhands/info.py"
EVENTS = "perdure/gateway/openhands/events.py"
SEARCH = "perdure/gateway/openhands/search.py"

OPENHANDS = Surface(
    "openhands",
    ("tests/gateway/openhands",),
    (
        Deviation(
            "a socket does not begin with the whole state",
            SOCKET,
            "            await self._send_first_state()\n",
            "",
        ),
        Deviation(
            "a socket whose conversation is not there is closed with 1000",
            SOCKET,
            "number = FINAL_CODES.get(code) or CLOSE_CODES.get(code, OTHER_CLOSE_CODE)",
            "number = 1000",
        ),
        Deviation(
            "a socket sends the earlier events to who did not ask for them",
            SOCKET,
            '    if mode != "since" or after is None:\n        return 2**53\n',
            '    if mode != "since" or after is None:\n        return 0\n',
        ),
        Deviation(
            "the end of a run is not told by the whole state",
            VIEW,
            "            yield self.full_state(), True\n",
            "            return\n",
        ),
        Deviation(
            "the status comes behind the whole state",
            VIEW,
            """        yield from ((text, False) for text in self._list_changes(before))
        self.runs""",
            """        self.runs""",
        ),
        Deviation(
            "an interrupted conversation is idle",
            INFO,
            'return "paused"',
            'return "idle"',
        ),
        Deviation(
            "the whole state has no confirmation policy",
            INFO,
            '"confirmation_policy": policy_of(',
            '"policy": policy_of(',
        ),
        Deviation(
            "an event is earlier than the one before it",
            EVENTS,
            'max(fields["timestamp"], newest)',
            'fields["timestamp"]',
        ),
        Deviation(
            "our own notes of a conversation are shown as events",
            EVENTS,
            "event.key in OWN_KEYS",
            "event.key == ''",
        ),
        Deviation(
            "a state that no log has is always the same event",
            EVENTS,
            'head = {"id": str(uuid4())',
            'head = {"id": "00000000-0000-0000-0000-000000000000"',
        ),
        Deviation(
            "the last page names another",
            SEARCH,
            "following.id if following is not None else None",
            'following.id if following is not None else ""',
        ),
        Deviation(
            "a page begins behind the event that it is named by",
            SEARCH,
            "self.events.read(log, native, seq or 0)",
            "self.events.read(log, native, seq + 1 if seq else 0)",
        ),
    ),
)
