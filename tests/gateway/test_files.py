"""The files of a conversation through the native API."""

from hashlib import sha256
from io import BytesIO
from zipfile import ZipFile

import pytest

from tests.gateway.stage import GatewayStage
from tests.gateway.test_conversations import events
from tests.harness import text_answer, tool_call_answer

PNG = b"\x89PNG\r\n\x1a\nand so on"


def write(path: str, text: str) -> dict[str, object]:
    return tool_call_answer(("file_editor", {"command": "create", "path": path, "file_text": text}))


@pytest.mark.long
async def test_the_workspace_is_read_at_any_slot_with_what_changed(stage: GatewayStage) -> None:
    answers = (
        write("a.txt", "one\n"),
        text_answer("Done."),
        write("dir/b.html", "<script>alert(1)</script>"),
        text_answer("Done."),
    )
    name = await stage.start(*answers, tools=("file_editor",))
    path = f"/v1/conversations/{name}"
    await stage.wait_until(name, "finished")
    first_end = (await events(stage.anna, name))["end_seq"]
    await stage.anna.post(f"{path}/messages", json={"text": "More"})
    await stage.wait_until(name, "finished")
    listed = (await stage.anna.get(f"{path}/files")).json()
    assert {item["path"]: item["size"] for item in listed["items"]} == {
        "a.txt": 4,
        "dir/b.html": 25,
    }
    before = (await stage.anna.get(f"{path}/files", params={"at": first_end - 1})).json()
    assert [item["path"] for item in before["items"]] == ["a.txt"]
    none = (await stage.anna.get(f"{path}/files", params={"at": 0})).json()
    assert (none["seq"], none["items"]) == (None, [])
    read = await stage.anna.get(f"{path}/files/dir/b.html")
    assert read.text == "<script>alert(1)</script>"
    assert read.headers["content-type"] == "application/octet-stream"
    assert read.headers["content-disposition"] == "attachment; filename*=UTF-8''b.html"
    assert read.headers["x-content-type-options"] == "nosniff"
    far = {"at": 2**53}
    assert (await stage.anna.get(f"{path}/files", params=far)).json() == listed
    assert (await stage.anna.get(f"{path}/files/dir/b.html", params=far)).text == read.text
    nothing = (await stage.anna.get(f"{path}/diff", params={"after_seq": 2**53})).json()
    assert nothing["items"] == []
    early = await stage.anna.get(f"{path}/files/dir/b.html", params={"at": first_end - 1})
    assert early.status_code == 404
    for trick in ("..%2f..%2fetc/passwd", "%2fetc%2fpasswd", "dir", "a.txt%00", "dir%2f..%2fa.txt"):
        assert (await stage.anna.get(f"{path}/files/{trick}")).status_code == 404
    assert (await stage.ben.get(f"{path}/files")).status_code == 404
    assert (await stage.ben.get(f"{path}/files/a.txt")).status_code == 404
    changes = (await stage.anna.get(f"{path}/diff", params={"after_seq": first_end - 1})).json()
    assert [item["path"] for item in changes["items"]] == ["dir/b.html"]
    assert "+<script>" in changes["diff"]
    query = {"through_seq": first_end - 1}
    older = (await stage.anna.get(f"{path}/diff", params=query)).json()
    assert [(item["path"], item["kind"]) for item in older["items"]] == [("a.txt", "added")]


async def test_an_image_of_a_message_is_read_as_a_blob(stage: GatewayStage) -> None:
    data = "data:image/png;base64,iVBORw0KGgphbmQgc28gb24="
    agent = stage.harness.spec(text_answer("I see.")).model_dump(mode="json", exclude_unset=True)
    body = {"text": "Look", "agent": agent, "images": [data]}
    name = (await stage.anna.post("/v1/conversations", json=body)).json()["id"]
    path = f"/v1/conversations/{name}/blobs/{sha256(PNG).hexdigest()}"
    await stage.wait_until(name, "finished")
    blob = await stage.anna.get(path)
    assert (blob.content, blob.headers["content-type"]) == (PNG, "image/png")
    again = await stage.anna.get(path, headers={"If-None-Match": blob.headers["etag"]})
    assert again.status_code == 304
    assert (await stage.ben.get(path)).status_code == 404
    assert (await stage.anna.get(f"{path[:-4]}0000")).status_code == 404
    files = await stage.anna.post(
        f"/v1/conversations/{name}/messages", json={"text": "?", "images": ["/etc/passwd"]}
    )
    assert files.status_code == 422


@pytest.mark.long
async def test_a_conversation_is_exported(stage: GatewayStage) -> None:
    name = await stage.start(text_answer("It is 5."))
    path = f"/v1/conversations/{name}/export"
    await stage.wait_until(name, "finished")
    raw = await stage.anna.get(path)
    assert len(raw.text.splitlines()) == (await events(stage.anna, name))["end_seq"]
    chat = await stage.anna.get(path, params={"format": "openai"})
    assert chat.headers["content-disposition"].startswith("attachment")
    assert "It is 5." in chat.text
    page = await stage.anna.get(path, params={"format": "html"})
    assert page.headers["content-security-policy"] == "default-src 'none'; sandbox"
    folder = await stage.anna.get(path, params={"format": "openhands"})
    with ZipFile(BytesIO(folder.content)) as archive:
        assert any("event-00000" in file for file in archive.namelist())
    for wrong in ("none", "os:system"):
        refused = await stage.anna.get(path, params={"format": wrong})
        assert (refused.status_code, "There is no format" in refused.text) == (422, True)
    assert (await stage.ben.get(path)).status_code == 404
