"""Deviations from the Agent Client Protocol, as `perdure acp` talks it."""

from reliability.deviations.deviation import Deviation, Surface

METHODS = "perdure/acp/methods.py"
PROJECTION = "perdure/acp/projection.py"
REPLAY = "perdure/acp/replay.py"
RPC = "perdure/acp/rpc.py"
SERVER = "perdure/acp/server.py"
SESSION = "perdure/acp/session.py"
SESSIONS = "perdure/acp/sessions.py"
STDIO = "perdure/acp/stdio.py"

ACP = Surface(
    "acp",
    (
        "tests/acp/test_projections.py",
        "tests/acp/test_tool_calls.py",
        "tests/acp/test_messages.py",
        "tests/acp/test_stdio.py",
        "tests/acp/test_turns.py",
        "tests/acp/test_requests.py",
        "tests/acp/test_prompts.py",
    ),
    (
        Deviation(
            "session/load is answered before the log is told of",
            METHODS,
            "session, replay = await self.sessions.open(opened, tell=True)\n"
            "        session.go_on_telling(replay)\n        return _answer_opened(session)",
            "session, replay = await self.sessions.open(opened, tell=False)\n"
            "        session.go_on_telling(replay)\n        answer = _answer_opened(session)\n"
            "        return Answer(answer.result, lambda: session.replay(session.update))",
        ),
        Deviation(
            "a second prompt is taken while one is at work",
            METHODS,
            "        require_free(session)\n        message",
            "        message",
        ),
        Deviation(
            "a list has a null where there is no next page",
            METHODS,
            '**({"nextCursor": c} if (c := page.next_cursor) else {})',
            '"nextCursor": page.next_cursor',
        ),
        Deviation(
            "an answer has a null where there are no options",
            METHODS,
            'return Answer({"modes": list_modes(session.mode)}, tell_commands)',
            "modes = list_modes(session.mode)\n"
            '    return Answer({"modes": modes, "configOptions": None}, tell_commands)',
        ),
        Deviation(
            "what others print is on stdout",
            STDIO,
            "    os.dup2(2, 1)\n",
            "",
        ),
        Deviation(
            "a cancelled prompt is an error",
            METHODS,
            "    if reason is None:\n",
            '    if reason in (None, "cancelled"):\n',
        ),
        Deviation(
            "a cancelled prompt ends as if the agent had answered",
            PROJECTION,
            '        case _:\n            return "cancelled"',
            '        case _:\n            return "end_turn"',
        ),
        Deviation(
            "a call is updated before it is told of",
            PROJECTION,
            "return [*told, make_progress(self.calls[call.call_id].call_id)]",
            "return [make_progress(self.calls[call.call_id].call_id), *told]",
        ),
        Deviation(
            "a call that was told of is told of again once it is approved",
            PROJECTION,
            "        if name in self.calls:\n            return []\n",
            "",
        ),
        Deviation(
            "the messages of the user are not replayed",
            REPLAY,
            'entry.event.source == "user"',
            'entry.event.source == "nobody"',
        ),
        Deviation(
            "a limit is a failure",
            PROJECTION,
            'return "max_tokens" if failed.code == "max_tokens" else "max_turn_requests"',
            "return None",
        ),
        Deviation(
            "an unknown session is a bad parameter",
            RPC,
            "NotFound: NO_SUCH_SESSION",
            "NotFound: INVALID_PARAMS",
        ),
        Deviation(
            "an unknown method is a bad request",
            SERVER,
            "raise RpcError(METHOD_NOT_FOUND",
            "raise RpcError(INTERNAL_ERROR",
        ),
        Deviation(
            "who cancels a permission has rejected one call alone",
            SESSION,
            "every = [call.tool_call_id for call in asked.calls]",
            "every = [call.tool_call_id for call in asked.calls[:1]]",
        ),
        Deviation(
            "a turn under way is told of no more to who loads it",
            METHODS,
            "tell=True)\n        session.go_on_telling(replay)\n",
            "tell=True)\n",
        ),
        Deviation(
            "the version of the client is taken, whatever it is",
            METHODS,
            "min(asked.protocolVersion, PROTOCOL_VERSION)",
            "asked.protocolVersion",
        ),
        Deviation(
            "a relative folder is taken",
            "perdure/acp/requests.py",
            "    if not (PurePosixPath(path)",
            "    if False and not (PurePosixPath(path)",
        ),
        Deviation(
            "usage is that of the last part of a turn that has waited",
            SESSION,
            "            usage += outcome",
            "            usage = outcome",
        ),
    ),
)
