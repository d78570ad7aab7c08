"""`perdure batch rescore` scores by the code as it is now, in a worker that runs all the while."""

from pathlib import Path
from uuid import uuid4

import pytest

from tests.cli.batch.test_batch import write_answers, write_batch_file
from tests.cli.command import Perdure
from tests.cli.test_own_code import worker_of_clients

SCORER = "def agrees(sample, outcome):\n    return {value}\n"


@pytest.mark.long
async def test_a_scorer_that_was_edited_scores_by_its_new_code(
    configured: Perdure, tmp_path: Path
) -> None:
    module = f"scoring_{uuid4().hex[:12]}"
    (tmp_path / f"{module}.py").write_text(SCORER.format(value="0.25"))
    write_answers(tmp_path, "a", "b", "c")
    file, name = write_batch_file(tmp_path, more=f'scorers = ["{module}:agrees"]\n')
    text = Path(file).read_text().replace('scorers = ["includes"]\n', "")
    Path(file).write_text(text)
    async with worker_of_clients(configured, PERDURE_CLIENT_CODE="true") as perdure:
        first = await perdure("batch", "run", file, "-ojson")
        assert first.code == 0, first
        assert first.json["scores"]["agrees"]["mean"] == 0.25
        (tmp_path / f"{module}.py").write_text(SCORER.format(value="0.75 if sample.id else 0"))
        again = await perdure("batch", "rescore", name, "-ojson")
        assert again.code == 0, again
        assert again.json["scores"]["agrees"]["mean"] == 0.75
