"""The benchmark's own solution of a sample, as the answers of a scripted model."""

import ast
from collections.abc import Sequence

from examples.bfcl import upstream
from examples.bfcl.dataset import Sample, class_of
from perdure.testing.script import Script, ScriptedAnswer, ScriptedToolCall


def script(sample: Sample) -> Script:
    """Build the model's answers of the whole conversation, under the name of the sample."""
    turns = enumerate(sample.truth)
    answers = [answer for turn, calls in turns for answer in _turn(sample, turn, calls)]
    return Script(name=sample.id, answers=tuple(answers))


def _turn(sample: Sample, turn: int, calls: Sequence[str]) -> list[ScriptedAnswer]:
    """The answers of one turn; the last one calls nothing, which ends the turn.

    Models make the calls of a turn at once or one by one: every other turn here does either.
    """
    made = tuple(map(call, calls))
    at_once = (sample.number + turn) % 2 == 0
    groups = [made] if at_once and made else [(each,) for each in made]
    names = ", ".join(each.name for each in made) or "nothing"
    closing = ScriptedAnswer(content=f"Turn {turn + 1} is done. I called: {names}.")
    return [*(ScriptedAnswer(tool_calls=group) for group in groups), closing]


def call(text: str) -> ScriptedToolCall:
    """The tool call that a Python call like `sort('report.pdf')` stands for.

    Raises ValueError where the text is anything but one call of a known tool with literals.
    """
    expression = ast.parse(text.strip(), mode="eval").body
    if not isinstance(expression, ast.Call) or not isinstance(expression.func, ast.Name):
        raise ValueError(f"{text!r} is not one call of one function.")
    name = expression.func.id
    if (class_name := class_of(name)) is None:
        raise ValueError(f"{text!r} calls {name}, which is no tool of {upstream.CATEGORY}.")
    arguments = _arguments(expression, upstream.parameters(class_name, name))
    return ScriptedToolCall(name=name, arguments=arguments)


def _arguments(expression: ast.Call, names: Sequence[str]) -> dict[str, object]:
    positional = dict(zip(names, expression.args, strict=False))
    keywords = {word.arg: word.value for word in expression.keywords if word.arg}
    values = positional | keywords
    if len(values) < len(expression.args) + len(expression.keywords):
        raise ValueError(f"{ast.unparse(expression)!r} gives an argument that has no one name.")
    return {name: ast.literal_eval(value) for name, value in values.items()}


def python(name: str, arguments: dict[str, object]) -> str:
    """The Python call that a tool call stands for, as upstream's checker evaluates it.

    Whatever the arguments are, all of them are literals: nothing of a log is run as code.
    """
    return f"{name}(**{arguments!r})"
