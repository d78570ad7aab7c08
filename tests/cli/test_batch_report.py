"""`perdure batch report`: with the store alone, no Temporal and no worker."""

import asyncio
from pathlib import Path

import pytest

from cli.commands.batch_report import _check, _way
from client.errors import Invalid
from evaluation.sample import conversation_id
from tests.cli.kept_batches import alone, keep
from tests.evaluation.pages import Page


async def test_a_page_is_written_beside_what_it_links_to(tmp_path: Path) -> None:
    perdure, pages = alone(tmp_path), tmp_path / "the pages"
    pages.mkdir()
    await keep(tmp_path, "sums", {"a1": [1], "a2": [0], "b1": [None]}, expected=5)
    there, printed, wrong = await asyncio.gather(
        perdure(
            *("batch", "report", "sums", "--output", f"{tmp_path}/out/sums.html"),
            *("--ui", "http://localhost:8233", "--conversations", f"{pages}"),
        ),
        perdure("batch", "report", "sums", "--output", "-"),
        perdure("batch", "report", "nothing", "--output", f"{tmp_path}/none.html"),
    )
    assert (there.code, there.out) == (0, ""), there
    assert "sums.html" in there.err
    page = Page((tmp_path / "out" / "sums.html").read_text())
    assert "5 samples expected = 2 + 0 + 1 + 2." in page.sections["counts"]
    ways = [value for _, name, value in page.attributes if name == "href" and value[0] != "#"]
    failed = conversation_id("sums", "b1", 0)
    assert ways[:2] == [
        f"../the%20pages/{failed}.html",
        f"http://localhost:8233/namespaces/default/workflows/conv-{failed}",
    ]
    assert (printed.code, printed.err) == (0, "")
    assert Page(printed.out).tables["scores"][0].column("Mean") == ["0.500"]
    assert "http" not in printed.out.split("</style>")[1].split("<script>")[0]
    assert (wrong.code, wrong.out) == (3, "")
    assert "There is no batch 'nothing'" in wrong.err
    assert "There are sums." in wrong.err
    assert not (tmp_path / "none.html").exists()


@pytest.mark.parametrize(
    "ui", ["localhost:8233", "javascript:alert(1)//x", "http://", "http://[", "https://x/?a=b"]
)
def test_what_is_no_address_of_a_page_makes_no_links(ui: str) -> None:
    with pytest.raises(Invalid):
        _check(ui)


def test_the_way_to_a_folder_is_seen_from_the_page(tmp_path: Path) -> None:
    folder = tmp_path / "data:x"
    folder.mkdir()
    assert _way(f"{tmp_path}/page.html", folder) == "./data%3Ax"
    assert _way(f"{tmp_path}/deep/er/page.html", folder) == "../../data%3Ax"
    assert _way(f"{folder}/page.html", folder) == "."
    assert _way("page.html", None) is None
    with pytest.raises(Invalid):
        _way("page.html", tmp_path / "nowhere")
