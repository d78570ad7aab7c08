"""`perdure batch compare`: with the store alone, no Temporal and no worker."""

import asyncio
from dataclasses import dataclass
from pathlib import Path

import pytest
import pytest_asyncio

from perdure.cli.batch.report import compare
from perdure.cli.declarations.batches import Compare
from perdure.errors import Invalid, NotFound
from tests.cli.command import Perdure
from tests.cli.past_batch import store_only_command
from tests.cli.stored_batches import record_batch
from tests.exports.pages import Page

COUNT = 12


@dataclass(frozen=True)
class RecordedBatches:
    """Two batches: `before` fails all but one of its samples, `after` fails only that one."""

    perdure: Perdure
    folder: Path


@pytest_asyncio.fixture(scope="module")
async def batches(tmp_path_factory: pytest.TempPathFactory) -> RecordedBatches:
    folder = tmp_path_factory.mktemp("past")
    names = [f"{'ab'[at % 2]}{at:02}" for at in range(COUNT)]
    await record_batch(folder, "before", {name: [name == "a00"] for name in names}, expected=COUNT)
    await record_batch(
        folder,
        "after",
        {**{name: [name != "a00", 1] for name in names}, "new": [1, 1]},
        expected=COUNT + 1,
        epochs=2,
        reducers=["max", "pass@2"],
    )
    await record_batch(
        folder, "tables", {"a00": [{"f1": 0.5, "em": 1}]}, expected=1, scorers=["exact", "json"]
    )
    await record_batch(folder, "empty", {}, expected=3)
    return RecordedBatches(store_only_command(folder), folder)


@pytest.mark.long
async def test_a_comparison_says_in_words_whether_the_difference_is_more_than_noise(
    batches: RecordedBatches,
) -> None:
    output = batches.folder / "page.html"
    text, program = await asyncio.gather(
        batches.perdure("batch", "compare", "before", "after", "--output", f"{output}"),
        batches.perdure("batch", "compare", "before", "after", "--format", "json"),
    )
    assert text.code == 0, text
    assert "samples in both  12" in text.out
    assert "difference       +0.875 ± 0.125 (standard error)" in text.out
    assert "More than noise: the score went up (p = 0.0008, paired t-test, adjusted)" in text.out
    assert "    a00  1.000 -> 0.500\n" in text.out
    assert "scored only in after: 1 (new)" in text.out
    assert "after has 2 epochs, and before 1." in text.err
    assert program.code == 0
    assert (program.json["scorer"], program.json["reducer"]) == ("exact", "mean")
    [comparison] = program.json["comparisons"]
    assert (comparison["pairs"], comparison["after"], comparison["only_after"]) == (
        12,
        "after",
        ["new"],
    )
    assert comparison["mean_before"] == pytest.approx(1 / 12)
    assert comparison["mean_after"] == pytest.approx(11.5 / 12)
    assert comparison["p_value"] < 0.05
    assert comparison["significant"] is True
    assert [change["id"] for change in comparison["worse"]] == ["a00"]
    assert comparison["groups"]["kind"]["a"]["pairs"] == 6
    page = Page(output.read_text())
    assert "12" in page.sections["batch-1"]
    assert "after has 2 epochs, and before 1." in page.html


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (Compare(names=["before"]), "Name two batches or more"),
        (Compare(names=["before", "before"]), "each once"),
        (Compare(names=["before", "nothing"]), "There is no batch 'nothing'"),
        (Compare(names=["before", "u p"]), "is not the name of a batch"),
        (Compare(names=["before", "../up"]), "is not a user id"),
        (Compare(names=["before", "empty"]), "No sample of empty has a result yet."),
        (Compare(names=["before", "after"], scorer="judge"), "There are scores of exact."),
        (
            Compare(names=["after", "before"], reducer="pass@2"),
            "pass@2 needs 2 epochs, and before has 1.",
        ),
        (Compare(names=["before", "after"], reducer="most"), "there is no reducer 'most'"),
        (
            Compare(names=["before", "after"], metric="f1"),
            "before has no metric 'f1'. It has a plain",
        ),
        (
            Compare(names=["tables", "before"]),
            "before has no metric 'em'. It has a plain value.",
        ),
        (Compare(names=["before", "tables"]), "tables has no plain value. It has em, f1."),
    ],
)
async def test_batches_that_cannot_be_compared_are_refused_in_a_sentence(
    batches: RecordedBatches,
    monkeypatch: pytest.MonkeyPatch,
    options: Compare,
    sentence: str,
) -> None:
    for name in ("PERDURE_STORE", "PERDURE_DATA"):
        monkeypatch.setenv(name, batches.perdure.env[name])
    with pytest.raises((Invalid, NotFound)) as error:
        await compare(options)
    assert sentence in f"{error.value} {error.value.hint}"


@pytest.mark.long
async def test_errors_of_compare_are_json_for_programs(batches: RecordedBatches) -> None:
    page, program = await asyncio.gather(
        batches.perdure("batch", "compare", "before", "after", "--output", "json"),
        batches.perdure("batch", "compare", "before", "nothing", "--format", "json"),
    )
    assert (page.code, page.out) == (2, "")
    assert "does not end in .html" in page.err
    assert (program.code, program.error["code"]) == (3, "not_found")
