"""The scorer and the dataset function in docs/evaluation.md work as they are written there."""

import re
from pathlib import Path

from perdure.datasets.batch import parse_batch_toml
from perdure.datasets.dataset import read_dataset
from perdure.evaluation.sample import Sample
from perdure.evaluation.score import Outcome, parse_score
from perdure.evaluation.scorers.custom import CustomScorer
from perdure.references import add_user_folder, import_reference

PAGE = Path(__file__).parents[2] / "docs" / "evaluation.md"


def test_the_documented_batch_reads_its_dataset_and_scores(tmp_path: Path) -> None:
    text = PAGE.read_text()
    [code] = re.findall(r"^```python\n(# arithmetic\.py\n.*?)^```$", text, re.DOTALL | re.MULTILINE)
    [table] = re.findall(
        r'^```toml\n(name = "arithmetic"\n.*?)^```$', text, re.DOTALL | re.MULTILINE
    )
    (tmp_path / "arithmetic.py").write_text(code)
    add_user_folder(tmp_path)
    batch = parse_batch_toml(table)
    with read_dataset(batch) as dataset:
        samples = list(dataset)
    assert [sample.target for sample in samples] == [("2",), ("3",), ("4",), ("5",), ("6",)]
    [scorer] = batch.scorers
    assert isinstance(scorer, CustomScorer)
    function = import_reference(scorer.function)

    def value(sample: Sample, answer: str) -> object:
        return parse_score(function(sample, Outcome(text=answer), **scorer.options)).value

    assert value(samples[1], "It is 3.4, I think.") is True
    assert value(samples[1], "It is 5.") is False
    assert value(samples[1], "No idea.") is False
