"""The `perdure batch` commands through a gateway, with its address and a key alone."""

import asyncio
from pathlib import Path

import pytest

from tests.cli.batch.test_batch import write_answers, write_batch_file
from tests.cli.command import Perdure

READS = [
    ("status", "NAME", "-o", "json"),
    ("watch", "NAME", "-o", "json"),
    ("watch", "NAME", "a", "-o", "json"),
    ("results", "NAME"),
    ("results", "NAME", "--format", "json"),
    ("results", "NAME", "--format", "csv"),
    ("compare", "NAME", "NAME2"),
    ("compare", "NAME", "NAME2", "--format", "json"),
    ("export", "NAME", "--format", "openai"),
    ("pause", "NAME"),
    ("status", "nothing"),
    ("results", "nothing"),
    ("watch", "NAME", "unknown"),
    ("retune", "NAME"),
]


@pytest.mark.parametrize("reads", [READS[::4], pytest.param(READS, marks=pytest.mark.longest)])
@pytest.mark.long
@pytest.mark.timeout(300)
async def test_a_batch_is_run_and_read_through_the_gateway(
    perdure: Perdure, behind_gateway: Perdure, tmp_path: Path, reads: list[tuple[str, ...]]
) -> None:
    names = []
    for folder in (tmp_path / "one", tmp_path / "two"):
        folder.mkdir()
        file, name = write_batch_file(folder)
        write_answers(folder, "a and b")
        done = await behind_gateway("batch", "run", file, "-o", "json")
        assert (done.code, done.json["done"]) == (0, 3), done.err
        names.append(name)
    for words in reads:
        arguments = [{"NAME": names[0], "NAME2": names[1]}.get(it, it) for it in words]
        near, far = await asyncio.gather(
            perdure("batch", *arguments), behind_gateway("batch", *arguments)
        )
        assert (far.code, far.out) == (near.code, near.out), (arguments, far.err)
    page = str(tmp_path / "page.html")
    report = await behind_gateway("batch", "report", names[0], "--output", page)
    assert report.code == 0, report.err
    assert "What is a?" in Path(page).read_text()
    again = await behind_gateway("batch", "rescore", names[0], "-o", "json")
    assert (again.code, again.json["done"]) == (0, 3), again.err
    detached = await behind_gateway("batch", "retry", names[1], "--detach", "-o", "json")
    assert detached.json["batch"] == names[1]
