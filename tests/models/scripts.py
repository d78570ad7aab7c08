"""The scripts of the server that the tests of models call."""

from perdure.events.usage import Usage
from perdure.testing.script import Script, ScriptedAnswer, ScriptedFailure, ScriptedToolCall

STORY = Script(
    name="story",
    answers=(
        ScriptedAnswer(
            content="Let me look, \u2028 wörld, " * 3,
            reasoning_content="Where am I?",
            tool_calls=(
                ScriptedToolCall(name="look", arguments={"at": "é"}),
                ScriptedToolCall(name="say", arguments='{"half": '),
            ),
            usage=Usage(prompt_tokens=10, completion_tokens=4, cached_tokens=3, reasoning_tokens=2),
        ),
        ScriptedAnswer(content="Done."),
    ),
)
SLOW = Script(name="slow", answers=(ScriptedAnswer(content="word " * 400, chunk_delay=0.01),))
REPEATING = Script(
    name="repeating", answers=(ScriptedAnswer(content="word " * 300, chunk_delay=1e-9),)
)
FAILURES = {
    "limited": ScriptedFailure(status=429, retry_after=7),
    "quota": ScriptedFailure(
        status=429, code="insufficient_quota", message="You exceeded your quota."
    ),
    "key": ScriptedFailure(status=401, message="Incorrect API key provided: sk-abcdefgh12345678."),
    "forbidden": ScriptedFailure(status=403),
    "missing": ScriptedFailure(status=404),
    "overflow": ScriptedFailure(status=400, code="context_length_exceeded"),
    "long": ScriptedFailure(status=400, message="This model's maximum context length is 9 tokens."),
    "policy": ScriptedFailure(status=400, code="content_policy_violation"),
    "bad": ScriptedFailure(status=400, message="temperature must be at most 2"),
    "unprocessable": ScriptedFailure(status=422),
    "timeout": ScriptedFailure(status=408),
    "conflict": ScriptedFailure(status=409),
    "broken": ScriptedFailure(status=500),
    "gateway": ScriptedFailure(status=502),
    "overloaded": ScriptedFailure(status=503, retry_after=1.5),
    "late": ScriptedFailure(status=504),
    "busy": ScriptedFailure(status=529),
    "lost": ScriptedFailure(disconnect=True),
    "malformed": ScriptedFailure(malformed=True),
    "hanging": ScriptedFailure(hang=True),
}
FAILING = {
    name: Script(name=name, answers=(ScriptedAnswer(content="At last.", failures=(failure,)),))
    for name, failure in FAILURES.items()
}

SCRIPTS = {**{each.name: each for each in (STORY, SLOW, REPEATING)}, **FAILING}
