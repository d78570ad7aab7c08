"""Every format yields the same samples, and names a bad row by file and line."""

from datetime import date
from decimal import Decimal
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest

from perdure.datasets.dataset import read_dataset
from perdure.datasets.rows import BadDataset
from perdure.evaluation.sample import EncodedFile, Sample, build_sample
from perdure.evaluation.spec import parse_batch
from tests.datasets.making import ROWS, samples, write_jsonl

EXPECTED = [build_sample(row) for row in ROWS]


def write(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def test_jsonl_is_read(tmp_path: Path) -> None:
    assert samples(write_jsonl(tmp_path / "d.jsonl", *ROWS)) == EXPECTED


def test_jsonl_may_have_a_bom_empty_lines_and_no_last_newline(tmp_path: Path) -> None:
    content = b'\xef\xbb\xbf\n{"input": "a"}\r\n\n{"input": "\\u00e9"}'
    dataset = samples(write(tmp_path / "d.jsonl", content))
    assert [item.question for item in dataset] == ["a", "é"]


def test_csv_is_read(tmp_path: Path) -> None:
    lines = [
        "id,input,target",
        *(f"{item['id']},{item['input']},{item['target']}" for item in ROWS),
    ]
    assert samples(write(tmp_path / "d.csv", "\n".join(lines))) == EXPECTED


def test_a_cell_may_have_lines_quotes_and_json(tmp_path: Path) -> None:
    content = (
        "\ufeffid,question,setup,files,metadata\r\n"
        '1,"a ""b"",\r\nc",,"{""f"": ""x""}","{""level"": 2}"\r\n'
        "\r\n"
        "2,d,make,,\r\n"
    )
    first, second = samples(
        write(tmp_path / "d.csv", content), {"input": "question", "setup": "setup"}
    )
    assert first.question == 'a "b",\r\nc'
    assert (first.files, first.metadata, first.setup) == ({"f": "x"}, {"level": 2}, None)
    assert (second.id, second.setup, second.files) == ("2", "make", {})


def test_a_long_cell_is_read(tmp_path: Path) -> None:
    (sample,) = samples(write(tmp_path / "d.csv", "input\n" + "x" * 300_000))
    assert len(sample.question) == 300_000


def test_parquet_is_read(tmp_path: Path) -> None:
    path = tmp_path / "d.parquet"
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(ROWS), path)
    assert samples(path) == EXPECTED


def test_parquet_values_become_json(tmp_path: Path) -> None:
    row = {
        "input": "a",
        "files": {"b": b"\xff", "c": "d"},
        "day": date(2026, 3, 1),
        "price": Decimal("1.50"),
        "tags": ["x", None],
    }
    path = tmp_path / "d.parquet"
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist([row]), path)
    (sample,) = samples(path, {"metadata": ["day", "price", "tags"], "target": "price"})
    assert sample.files == {"b": EncodedFile(base64="/w=="), "c": "d"}
    assert sample.metadata == {"day": "2026-03-01", "price": "1.50", "tags": ["x", None]}
    assert sample.target == ("1.50",)


def test_a_python_function_yields_rows_and_samples() -> None:
    home = "tests.datasets.given"
    assert [sample.id for sample in samples(f"{home}:rows")] == ["1", "2"]
    assert [sample.question for sample in samples(f"{home}:ROWS")] == ["a", "b"]
    arguments = {"function": f"{home}:numbered", "arguments": {"count": 2, "start": 3}}
    with read_dataset(parse_batch({"name": "b", "model": "m", "dataset": arguments})) as reader:
        assert [sample.id for sample in reader] == ["3", "4"]
    (sample,) = samples(f"{home}:SAMPLES")
    assert isinstance(sample, Sample)
    assert sample.files == {"here": Path(__file__).with_name("making.py").read_text()}


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("d.jsonl", '{"input": "a"}\n{"input"}', "d.jsonl:2: it is no JSON: Expecting ':'"),
        ("d.jsonl", '\n\n["a"]', "d.jsonl:3: it is no JSON object"),
        ("d.jsonl", '{"input": NaN}', "d.jsonl:1: it is no JSON: NaN is no JSON value"),
        ("d.jsonl", b'{"input": "\xff"}', "d.jsonl:1: it is no UTF-8 (byte 12)"),
        ("d.jsonl", "[" * 100_000, "d.jsonl:1: it is no JSON"),
        ("d.jsonl", '{"target": "a"}', "d.jsonl:1: there is no column 'input' for input; the row"),
        ("d.jsonl", '{"input": null}', "d.jsonl:1: the key 'input' is missing"),
        ("d.jsonl", '{"input": "\\ud800"}', "d.jsonl:1: it has text that is no Unicode"),
        ("d.jsonl", '{"input": "a", "files": "{"}', "d.jsonl:1: files is no JSON: Expecting"),
        ("d.jsonl", "\n", "has no samples"),
        ("d.csv", 'input\n"a\nb"\n"c', "d.csv:4: it is no CSV: unexpected end of data"),
        ("d.csv", 'input,id\n"a\nb",1\nc', "d.csv:4: it has 1 cells, and the header has 2"),
        ("d.csv", "input,input\n", "d.csv:1: the header has 'input' twice"),
        ("d.csv", b"input\na\n\xff\n", "d.csv:3: it is no UTF-8 (byte 1)"),
        ("d.csv", "input,id\na,1\n,2", "d.csv:3: the key 'input' is missing"),
        ("d.csv", "", "has no samples"),
        ("d.parquet", "PAR1", "d.parquet cannot be read as Parquet"),
    ],
)
def test_an_unreadable_row_is_named(
    tmp_path: Path, name: str, content: str | bytes, sentence: str
) -> None:
    with pytest.raises(BadDataset) as refused:
        samples(write(tmp_path / name, content))
    assert sentence in str(refused.value)


def test_a_bad_row_of_parquet_is_named_by_its_number(tmp_path: Path) -> None:
    path = tmp_path / "d.parquet"
    pyarrow.parquet.write_table(pyarrow.table({"input": ["a"] * 100 + [None]}), path)
    with pytest.raises(BadDataset, match="parquet:101: the key 'input' is missing"):
        samples(path)


@pytest.mark.parametrize("name", ["d.jsonl", "d.csv", "d.parquet"])
def test_a_missing_file_is_named(tmp_path: Path, name: str) -> None:
    with pytest.raises(BadDataset, match=r"The dataset .*/d\.\w+ cannot be read \(No such file"):
        samples(tmp_path / name)


@pytest.mark.parametrize(
    ("attribute", "sentence"),
    [
        ("nothing", "has no attribute 'nothing': it has "),
        ("TEXT", "given:TEXT gives a str: it must give samples"),
        ("SPEC", "given:SPEC gives a dict: it must give samples"),
        ("MIXED", "given:MIXED:2: a int is no Sample and no object of fields"),
        ("breaks", "given:breaks:2: it raised OSError: the network is gone"),
    ],
)
def test_python_code_without_samples_is_named(attribute: str, sentence: str) -> None:
    with pytest.raises(BadDataset) as refused:
        samples(f"tests.datasets.given:{attribute}")
    assert sentence in str(refused.value)
