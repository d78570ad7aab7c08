"""The messages of a conversation as AG-UI has them: what its client makes of the events of runs."""

from dataclasses import dataclass, field
from typing import Any, TypeAlias

from perdure.events.content import ImageContent, TextContent
from perdure.events.messages import MessageEvent
from perdure.gateway.ag_ui.context import remove_context
from perdure.gateway.ag_ui.events import leave_out_none
from perdure.gateway.ag_ui.ids import MessageIds
from perdure.gateway.turns.parts import Called, Part, Reasoning, Returned, Text
from perdure.storage.keys import BLOBS

Message: TypeAlias = dict[str, Any]


@dataclass
class Messages:
    """The messages of a conversation, part by part; `blobs` is the address of its images."""

    ids: MessageIds
    blobs: str
    all: list[Message] = field(default_factory=list)
    _calls: dict[str, Called] = field(default_factory=dict)
    _spoken: dict[str, Message] = field(default_factory=dict)
    """What the agent says, by its steps."""

    def ask(self, event: MessageEvent) -> None:
        """Add a message of the user."""
        parts = [
            *({"type": "text", "text": text} for text in _list_texts(event)),
            *(self._show_image(url) for url in _list_images(event)),
        ]
        is_text = all(part["type"] == "text" for part in parts)
        content = "".join(part["text"] for part in parts) if is_text else parts
        self.all.append({"id": event.message_id or event.id, "role": "user", "content": content})

    def take(self, part: Part) -> None:
        """Add what a part brings."""
        match part:
            case Text(last=True, whole=text) if text:
                self._find_spoken(part.item_id)["content"] = text
            case Reasoning():
                name = self.ids.reasoning(part.item_id)
                self.all.append({"id": name, "role": "reasoning", "content": part.text})
            case Called():
                self._call(part)
            case Returned():
                self._return(part)
            case _:
                pass

    def _find_spoken(self, item_id: str) -> Message:
        """Return the message of a step, which is there or begins."""
        if (found := self._spoken.get(item_id)) is None:
            found = self._spoken[item_id] = {"id": self.ids.text(item_id), "role": "assistant"}
            self.all.append(found)
        return found

    def _call(self, part: Called) -> None:
        self._calls[part.call_id] = part
        if part.approval == "answered":
            return
        function = {"name": part.tool_name, "arguments": part.arguments}
        call = {"id": part.call_id, "type": "function", "function": function}
        self._find_spoken(part.item_id).setdefault("toolCalls", []).append(call)

    def _return(self, part: Returned) -> None:
        call = self._calls.get(part.call_id)
        name = self.ids.result(call.item_id if call is not None else "", part.call_id)
        fields = {"id": name, "role": "tool", "toolCallId": part.call_id, "content": part.text}
        error = part.text if part.is_error else None
        place = len(self.all) if call is None else self._find_place(call)
        self.all.insert(place, {**fields, **leave_out_none(error=error)})

    def _find_place(self, call: Called) -> int:
        """Return where a result stands: behind its call, and results that came before it."""
        caller = self._spoken.get(call.item_id)
        place = len(self.all)
        while place and self.all[place - 1] is not caller:
            place -= 1
        place = place or len(self.all)
        while place < len(self.all) and self.all[place]["role"] == "tool":
            place += 1
        return place

    def _show_image(self, url: str) -> Message:
        is_kept = url.startswith(BLOBS)
        address = f"{self.blobs}/{url.removeprefix(BLOBS)}" if is_kept else url
        return {"type": "image", "source": {"type": "url", "value": address}}


def _list_texts(event: MessageEvent) -> list[str]:
    texts = [it.text for it in event.llm_message.content if isinstance(it, TextContent)]
    return [remove_context(text) for text in texts]


def _list_images(event: MessageEvent) -> list[str]:
    images = [it for it in event.llm_message.content if isinstance(it, ImageContent)]
    return [url for image in images for url in image.image_urls]
