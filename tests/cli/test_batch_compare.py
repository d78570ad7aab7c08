"""`perdure batch compare`: with the store alone, no Temporal and no worker."""

import asyncio
from dataclasses import dataclass
from pathlib import Path

import pytest
import pytest_asyncio

from cli.commands.batch_compare import Asked, Shape, _compare
from client.errors import Invalid, NotFound
from tests.cli.command import Perdure
from tests.cli.kept_batches import alone, keep
from tests.evaluation.pages import Page

COUNT = 12


@dataclass(frozen=True)
class Past:
    """`before` is wrong about all but one of its samples, `after` about that one alone."""

    perdure: Perdure
    folder: Path


@pytest_asyncio.fixture(scope="module")
async def past(tmp_path_factory: pytest.TempPathFactory) -> Past:
    folder = tmp_path_factory.mktemp("past")
    names = [f"{'ab'[at % 2]}{at:02}" for at in range(COUNT)]
    await keep(folder, "before", {one: [one == "a00"] for one in names}, expected=COUNT)
    await keep(
        folder,
        "after",
        {**{one: [one != "a00", 1] for one in names}, "new": [1, 1]},
        expected=COUNT + 1,
        epochs=2,
        reducers=["max", "pass@2"],
    )
    await keep(
        folder, "tables", {"a00": [{"f1": 0.5, "em": 1}]}, expected=1, scorers=["exact", "json"]
    )
    await keep(folder, "empty", {}, expected=3)
    return Past(alone(folder), folder)


async def test_it_says_in_words_whether_it_is_more_than_noise(past: Past) -> None:
    output = past.folder / "page.html"
    text, told = await asyncio.gather(
        past.perdure("batch", "compare", "before", "after", "--output", f"{output}"),
        past.perdure("batch", "compare", "before", "after", "--format", "json"),
    )
    assert text.code == 0, text
    assert "samples in both  12" in text.out
    assert "difference       +0.875 ± 0.125 (standard error)" in text.out
    assert "More than noise: the score went up (p = 0.0010, sign-flip test" in text.out
    assert "    a00  1.000 -> 0.500\n" in text.out
    assert "scored only in after: 1 (new)" in text.out
    assert "after has 2 epochs, and before 1." in text.err
    assert told.code == 0
    assert (told.json["scorer"], told.json["reducer"]) == ("exact", "mean")
    [one] = told.json["comparisons"]
    assert (one["pairs"], one["after"], one["only_after"]) == (12, "after", ["new"])
    assert one["mean_before"] == pytest.approx(1 / 12)
    assert one["mean_after"] == pytest.approx(11.5 / 12)
    assert one["p_value"] < 0.05
    assert one["significant"] is True
    assert [change["id"] for change in one["worse"]] == ["a00"]
    assert one["groups"]["kind"]["a"]["pairs"] == 6
    page = Page(output.read_text())
    assert "12" in page.sections["batch-1"]
    assert "after has 2 epochs, and before 1." in page.html


@pytest.mark.parametrize(
    ("names", "asked", "sentence"),
    [
        (["before"], Asked(), "Name two batches or more"),
        (["before", "before"], Asked(), "each once"),
        (["before", "nothing"], Asked(), "There is no batch 'nothing'"),
        (["before", "../up"], Asked(), "is not the name of a batch"),
        (["before", "empty"], Asked(), "No sample of empty has a result yet."),
        (["before", "after"], Asked(scorer="judge"), "There are scores of exact."),
        (["after", "before"], Asked(reducer="pass@2"), "pass@2 needs 2 epochs, and before has 1."),
        (["before", "after"], Asked(reducer="most"), "there is no reducer 'most'"),
        (["before", "after"], Asked(metric="f1"), "before has no metric 'f1'. It has a plain"),
        (["tables", "before"], Asked(), "before has no metric 'em'. It has a plain value."),
        (["before", "tables"], Asked(), "tables has no plain value. It has em, f1."),
    ],
)
async def test_what_cannot_be_compared_is_told_in_a_sentence(
    past: Past, monkeypatch: pytest.MonkeyPatch, names: list[str], asked: Asked, sentence: str
) -> None:
    for name in ("PERDURE_STORE", "PERDURE_DATA"):
        monkeypatch.setenv(name, past.perdure.env[name])
    with pytest.raises((Invalid, NotFound)) as wrong:
        await _compare(names, asked, every=False, output=None, shape=Shape.text)
    assert sentence in f"{wrong.value} {wrong.value.hint}"


@pytest.mark.long
async def test_what_is_wrong_is_told_to_programs_too(past: Past) -> None:
    page, program = await asyncio.gather(
        past.perdure("batch", "compare", "before", "after", "--output", "json"),
        past.perdure("batch", "compare", "before", "nothing", "--format", "json"),
    )
    assert (page.code, page.out) == (2, "")
    assert "does not end in .html" in page.err
    assert (program.code, program.error["code"]) == (3, "not_found")
