"""`perdure batch report`: with the store alone, no Temporal and no worker."""

import asyncio
from pathlib import Path

import pytest

from perdure.cli.batch.report import _check_ui_address, _relative_link
from perdure.errors import Invalid
from perdure.evaluation.sample import conversation_id
from tests.cli.past_batch import store_only_command
from tests.cli.stored_batches import record_batch
from tests.exports.pages import Page


@pytest.mark.long
async def test_a_page_links_to_conversations_and_workflows(tmp_path: Path) -> None:
    perdure, pages = store_only_command(tmp_path), tmp_path / "the pages"
    pages.mkdir()
    await record_batch(tmp_path, "sums", {"a1": [1], "a2": [0], "b1": [None]}, expected=5)
    written, printed, wrong = await asyncio.gather(
        perdure(
            *("batch", "report", "sums", "--output", f"{tmp_path}/out/sums.html"),
            *("--ui", "http://localhost:8233", "--conversations", f"{pages}"),
        ),
        perdure("batch", "report", "sums", "--output", "-"),
        perdure("batch", "report", "nothing", "--output", f"{tmp_path}/none.html"),
    )
    assert (written.code, written.out) == (0, ""), written
    assert "sums.html" in written.err
    page = Page((tmp_path / "out" / "sums.html").read_text())
    assert "5 samples expected = 2 + 0 + 1 + 2." in page.sections["counts"]
    links = [value for _, name, value in page.attributes if name == "href" and value[0] != "#"]
    failed = conversation_id("sums", "b1", 0)
    assert links[:2] == [
        f"../the%20pages/{failed}.html",
        f"http://localhost:8233/namespaces/default/workflows/conv-{failed}",
    ]
    assert (printed.code, printed.err) == (0, "")
    [samples] = page.tables["samples"]
    assert "--conversations" not in page.sections["samples"]
    assert "perdure batch report sums --conversations" in Page(printed.out).sections["samples"]
    assert set(samples.column("Input")) == {"?"}
    assert Page(printed.out).tables["scores"][0].column("Mean") == ["0.500"]
    assert "http" not in printed.out.split("</style>")[1].split("<script>")[0]
    assert (wrong.code, wrong.out) == (3, "")
    assert "There is no batch 'nothing'" in wrong.err
    assert "There are sums." in wrong.err
    assert not (tmp_path / "none.html").exists()


@pytest.mark.parametrize(
    "ui", ["localhost:8233", "javascript:alert(1)//x", "http://", "http://[", "https://x/?a=b"]
)
def test_a_ui_that_is_no_http_address_is_refused(ui: str) -> None:
    with pytest.raises(Invalid):
        _check_ui_address(ui)


def test_a_link_to_a_folder_is_relative_to_the_page(tmp_path: Path) -> None:
    folder = tmp_path / "data:x"
    folder.mkdir()
    assert _relative_link(f"{tmp_path}/page.html", folder) == "./data%3Ax"
    assert _relative_link(f"{tmp_path}/deep/er/page.html", folder) == "../../data%3Ax"
    assert _relative_link(f"{folder}/page.html", folder) == "."
    assert _relative_link("page.html", None) is None
    with pytest.raises(Invalid):
        _relative_link("page.html", tmp_path / "nowhere")
