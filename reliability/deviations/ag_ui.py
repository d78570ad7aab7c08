"""Deviations from AG-UI's runs."""

from reliability.deviations.deviation import Deviation, Surface

ROOM = "perdure/gateway/ag_ui"
RUN, CALLS, EVENTS, ENDS = (f"{ROOM}/{name}.py" for name in ("run", "calls", "events", "ends"))
BEGIN, HISTORY, IDS = (f"{ROOM}/{name}.py" for name in ("begin", "history", "ids"))
MESSAGES, STREAM = f"{ROOM}/messages.py", f"{ROOM}/stream.py"

AG_UI = Surface(
    "ag-ui",
    ("tests/gateway/ag_ui",),
    (
        Deviation(
            "the state comes before the run has started",
            RUN,
            'make_event("RUN_STARTED", **self.head.names, **more),',
            "",
        ),
        Deviation(
            "fields that are absent are null",
            EVENTS,
            "for name, value in fields.items() if value is not None}",
            "for name, value in fields.items()}",
        ),
        Deviation(
            "a text is open at the end of its step",
            RUN,
            'return [*self._end_text(), make_event("STEP_FINISHED"',
            'return [make_event("STEP_FINISHED"',
        ),
        Deviation(
            "a run does not finish",
            RUN,
            'return [*told, make_event("RUN_FINISHED", **names, outcome=outcome, usage=usage)]',
            "return told",
        ),
        Deviation(
            "events follow an error",
            RUN,
            'return [*told, make_event("RUN_ERROR", **fields, usage=usage)]',
            'return [make_event("RUN_ERROR", **fields, usage=usage), *told]',
        ),
        Deviation(
            "a message has another id each time it is told",
            IDS,
            '{_hash(chr(0).join(origin))[:32]}"',
            '{id(origin)}"',
        ),
        Deviation(
            "an id is opened twice",
            EVENTS,
            'return name if count == 1 else f"{name}_{count}"',
            "return name",
        ),
        Deviation(
            "a run that a person has stopped is a success",
            ENDS,
            '{"type": "cancelled" if was_stopped else "success"}',
            '{"type": "success"}',
        ),
        Deviation(
            "an interrupt has not the id of its call",
            ENDS,
            '"id": waiting.tool_call_id',
            '"id": str(waiting.seq)',
        ),
        Deviation(
            "a call that was answered is called again",
            CALLS,
            '        if part.approval == "answered":\n            return self._delegate(part)\n',
            "",
        ),
        Deviation(
            "a snapshot has the turn that is told behind it",
            HISTORY,
            "return History(keep_newest(reader.before), reader.seq)",
            "return History(keep_newest(reader.messages.all), reader.seq)",
        ),
        Deviation(
            "a message is taken while a run is under way",
            BEGIN,
            "    if (detail := LOCKED.get(state.status)) is not None:\n",
            "    if (detail := LOCKED.get(state.status)) == '':\n",
        ),
        Deviation(
            "the same request says the same again",
            BEGIN,
            "message_id = find_message_id(call.user_id, message.message_id)",
            "message_id = find_message_id(call.user_id, call.body.run_id)",
        ),
        Deviation(
            "some of what waits need not be answered",
            BEGIN,
            "if missing := sorted(waiting - {answer.call_id for answer in answers}):",
            "if missing := sorted(waiting - waiting):",
        ),
        Deviation(
            "a client that is behind is told nothing",
            BEGIN,
            "return newest is not None and newest not in known",
            "return False",
        ),
        Deviation(
            "reasoning that a client keeps is doubled",
            RUN,
            "        if name in self.head.told:\n            return []\n",
            "",
        ),
        Deviation(
            "a snapshot shows the context",
            MESSAGES,
            "[remove_context(text) for text in texts]",
            "texts",
        ),
        Deviation(
            "a snapshot has results in another order than the stream",
            MESSAGES,
            '        while place < len(self.all) and self.all[place]["role"] == "tool":\n'
            "            place += 1\n",
            "",
        ),
        Deviation(
            "users share the threads of a name",
            IDS,
            "return derive_conversation_id(user_id, ",
            'return derive_conversation_id("all", ',
        ),
        Deviation(
            "a thread at rest is told for ever",
            STREAM,
            "    if run.seq is None:\n",
            "    if run.seq is None and call.body.messages:\n",
        ),
        Deviation(
            "a stream that breaks has no end",
            STREAM,
            "    if not projection.is_over:\n",
            "    if not projection.is_over and failure is None:\n",
        ),
    ),
)
