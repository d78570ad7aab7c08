"""The messages of a prompt: a view in the OpenAI chat format."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from perdure.agent.calls.arguments import render_arguments
from perdure.agent.spec import CondenserSpec, NoCondenser
from perdure.agent.view.atomic_groups import ActionResult
from perdure.agent.view.condense.masking import VisibleView, mask_view, may_hide
from perdure.agent.view.cut_points import ViewEvent, is_user
from perdure.agent.view.view import View
from perdure.events.content import (
    Content,
    ImageContent,
    TextContent,
    ToolDefinition,
    cut_middle,
    join_text,
)
from perdure.events.messages import MessageEvent, RecallEvent, SystemPromptEvent
from perdure.events.tools import (
    ActionEvent,
    AgentErrorEvent,
    ObservationEvent,
    UserRejectObservation,
)

ChatMessage: TypeAlias = dict[str, Any]

MAX_CALL_ID_CHARS = 40
"""Characters of a call id that every provider accepts."""


@dataclass
class _FixedMessages:
    """The messages of the first `events` that remain after so many condensations."""

    condensations: int = 0
    events: int = 0
    messages: list[ChatMessage] = field(default_factory=list)
    call_ids: set[str] = field(default_factory=set)


class Transcript:
    """The messages of a view; grows with the log, and renders each event once.

    The messages are well formed, whatever the log holds: a call stands with its result or not at
    all, the results in the order of the calls, nothing between them, and no call id twice. So a
    batch is shown once its last result is in, and messages sent meanwhile come after it. Empty
    messages are left out: some providers reject them. The newest system prompt stays in force even
    if a condensation forgot it.
    """

    def __init__(self, condenser: CondenserSpec | None = None) -> None:
        self.condenser: CondenserSpec = condenser or NoCondenser()
        self.view = View()
        self.max_message_chars: int | None = None
        self.has_images = False
        """Whether a message that was rendered up to now has an image."""
        self._rendered: dict[str, Any] = {}
        self._fixed = _FixedMessages()

    def limit_results(self, max_chars: int | None) -> None:
        """Cut the middle out of results of more characters; None shows them whole."""
        if max_chars != self.max_message_chars:
            self.max_message_chars = max_chars
            self._rendered, self._fixed = {}, _FixedMessages()

    @property
    def tools(self) -> list[dict[str, Any]]:
        prompt = self.view.prompt
        if prompt is None:
            return []
        rendered = map(render_tool, prompt.tools)
        tools: list[dict[str, Any]] = self._render_once(f"{prompt.id} tools", list, rendered)
        return tools

    def messages(self) -> list[ChatMessage]:
        """Return the prompt as it stands; callers may change the list, but not its messages."""
        prompt = self.view.prompt
        system: list[ChatMessage] = []
        if prompt is not None:
            system.append(self._render_once(f"{prompt.id} system", _system_message, prompt))
        if may_hide(self.condenser, self.view.result_names):
            return system + self._render(mask_view(self.view, self.condenser), set())
        return system + self._render_grown()

    def _render_grown(self) -> list[ChatMessage]:
        """Render the events behind the fixed messages, which no further event can change."""
        view, fixed = self.view, self._fixed
        if fixed.condensations != view.condensations:
            fixed = self._fixed = _FixedMessages(view.condensations)
        new, has_loops = view.remaining[fixed.events :], bool(view.groups.thinking_starts)
        is_whole = view.groups.are_answered(new) and not (has_loops and view.condensations)
        if has_loops and not is_whole:  # a loop with an open batch is left out whole
            return self._render(VisibleView(view.events, {}), set())
        if not is_whole:
            whole = VisibleView(view.groups.select_whole(new), {})
            return fixed.messages + self._render(whole, set(fixed.call_ids))
        if not new or _may_be_recalled_for(new[-1]):
            return fixed.messages + self._render(VisibleView(new, {}), set(fixed.call_ids))
        fixed.messages += self._render(VisibleView(new, {}), fixed.call_ids)
        fixed.events = len(view.remaining)
        return list(fixed.messages)

    def _render(self, visible: VisibleView, call_ids: set[str]) -> list[ChatMessage]:
        """Render the messages of events; `call_ids` has the ids before them, and gets theirs."""
        groups = self.view.groups
        batches: dict[int, list[ActionEvent]] = {}
        results: dict[str, ActionResult] = {}
        for event in visible.events:
            if isinstance(event, ActionEvent):
                batches.setdefault(groups.batch_of[event.id], []).append(event)
            elif isinstance(event, ActionResult):
                results[groups.action_of[event.id]] = event
        messages: list[ChatMessage] = []
        for event, recalled in _attach_recalls(visible.events):
            if isinstance(event, ActionEvent):  # its whole batch stands at the first of its actions
                batch = batches.pop(groups.batch_of[event.id], [])
                messages += self._render_batch(batch, results, visible.notes, call_ids)
                continue
            if isinstance(event, MessageEvent):
                key = " ".join((event.id, *(recall.id for recall in recalled)))
                message = self._render_once(key, _chat_message, event, recalled)
            else:
                message = {"role": "user", "content": event.model_text()}
            messages += [message] if message["content"] else []
        return messages

    def _render_batch(
        self,
        batch: Sequence[ActionEvent],
        results: Mapping[str, ActionResult],
        notes: Mapping[str, str],
        call_ids: set[str],
    ) -> list[ChatMessage]:
        calls, answers = [], []
        for action in batch:
            call_id, result = _unique_call_id(action, call_ids), results[action.id]
            function = self._render_once(action.id, _call_fields, action)
            calls.append({"id": call_id, "type": "function", "function": function})
            content: Any = notes.get(result.id)
            if content is None:
                content = self._render_once(
                    result.id, render_result, result, self.max_message_chars
                )
            answer = {"tool_call_id": call_id, "name": result.tool_name, "content": content}
            answers.append({"role": "tool", **answer})
        if not batch:
            return []
        message = {"role": "assistant", "content": join_text(batch[0].thought) or None}
        return [{**message, "tool_calls": calls, **_thinking_fields(batch[0])}, *answers]

    def _render_once(self, key: str, render: Callable[..., Any], *arguments: Any) -> Any:
        if key not in self._rendered:
            rendered = self._rendered[key] = render(*arguments)
            self.has_images = self.has_images or _has_image(rendered)
        return self._rendered[key]


def _has_image(rendered: Any) -> bool:
    """Tell whether a message, or the content of one, has an image among its parts."""
    content = rendered.get("content") if isinstance(rendered, dict) else rendered
    return isinstance(content, list) and any(part["type"] == "image_url" for part in content)


def _may_be_recalled_for(event: ViewEvent) -> bool:
    """Tell whether a recall behind the event belongs to a message before."""
    return isinstance(event, RecallEvent) or (isinstance(event, MessageEvent) and is_user(event))


def _unique_call_id(action: ActionEvent, call_ids: set[str]) -> str:
    """Return the call's own id, or a generated one if that is empty or a duplicate."""
    call_id = action.tool_call_id
    if not call_id or call_id in call_ids:
        call_id = f"call_{action.id.replace('-', '')}"[:MAX_CALL_ID_CHARS]
    call_ids.add(call_id)
    return call_id


def _attach_recalls(events: Sequence[ViewEvent]) -> list[tuple[ViewEvent, list[RecallEvent]]]:
    """Return each event, a user's message together with the recalls right behind it."""
    attached: list[tuple[ViewEvent, list[RecallEvent]]] = []
    for event in events:
        last = attached[-1][0] if attached else None
        if isinstance(event, RecallEvent) and isinstance(last, MessageEvent) and is_user(last):
            attached[-1][1].append(event)
        else:
            attached.append((event, []))
    return attached


def _system_message(event: SystemPromptEvent) -> ChatMessage:
    """Render the system prompt, with its dynamic part behind what providers can cache."""
    if event.dynamic_context is None:
        return {"role": "system", "content": event.system_prompt.text}
    parts = (event.system_prompt, event.dynamic_context)
    return {"role": "system", "content": [item for part in parts for item in _render_part(part)]}


def _thinking_fields(event: Any) -> ChatMessage:
    """Return the model's thoughts; the adapter knows which provider wants them back."""
    fields: ChatMessage = {}
    if event.reasoning_content:
        fields["reasoning_content"] = event.reasoning_content
    if event.thinking_blocks:
        fields["thinking_blocks"] = [block.model_dump() for block in event.thinking_blocks]
    return fields


def _call_fields(event: ActionEvent) -> dict[str, Any]:
    return {"name": event.tool_call.name, "arguments": render_arguments(event)}


def render_result(event: ActionResult, max_chars: int | None = None) -> Any:
    """Render the content of a result: a text, or parts where it has images."""
    content: tuple[Content, ...]
    match event:
        case ObservationEvent():
            content = event.observation.content
        case AgentErrorEvent():
            content = (TextContent(text=event.error),)
        case UserRejectObservation():
            text = f"The user did not allow this: {event.rejection_reason}"
            content = (TextContent(text=text),)
    return _render_content(cut_middle(content, max_chars))


def _chat_message(event: MessageEvent, recalled: Sequence[RecallEvent]) -> ChatMessage:
    message = event.llm_message
    context = (TextContent(text=recall.content) for recall in recalled if recall.content)
    content = _render_content((*message.content, *event.extended_content, *context))
    if is_user(event):
        return {"role": "user", "content": content}
    return {"role": "assistant", "content": content} | _thinking_fields(message)


def _render_content(parts: Iterable[TextContent | ImageContent]) -> Any:
    """Return plain text if there are no images: every provider accepts that."""
    parts = tuple(parts)
    if not any(isinstance(part, ImageContent) for part in parts):
        return join_text(parts)
    return [item for part in parts for item in _render_part(part)]


def _render_part(part: TextContent | ImageContent) -> list[dict[str, Any]]:
    if isinstance(part, TextContent):
        return [{"type": "text", "text": part.text}]
    return [{"type": "image_url", "image_url": {"url": url}} for url in part.image_urls]


def render_tool(tool: ToolDefinition) -> dict[str, Any]:
    """Render a tool for chat completions."""
    function = tool.model_dump(mode="json", include={"name", "description", "parameters"})
    return {"type": "function", "function": function}
