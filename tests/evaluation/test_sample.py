"""A row becomes a sample, or is refused in a sentence."""

from typing import Any
from uuid import UUID

import pytest

from perdure.evaluation.sample import (
    EncodedFile,
    InvalidSample,
    Sample,
    SourceFile,
    build_sample,
    conversation_id,
)
from perdure.events.content import ImageContent, TextContent, join_text


def test_a_text_input_is_one_user_message() -> None:
    sample = build_sample({"id": 7, "input": "Add 2 and 2.", "target": 4})
    assert (sample.id, sample.target, sample.question) == ("7", ("4",), "Add 2 and 2.")
    assert [item.role for item in sample.input] == ["user"]


def test_input_messages_may_have_the_openai_format() -> None:
    parts = [
        {"type": "text", "text": "What is this?"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
    ]
    sample = build_sample(
        {
            "input": [
                {"role": "system", "content": "Be short."},
                {"role": "user", "content": parts},
            ]
        }
    )
    assert join_text(sample.input[0].content) == "Be short."
    assert sample.input[1].content == (
        TextContent(text="What is this?"),
        ImageContent(image_urls=("data:image/png;base64,AAAA",)),
    )
    assert sample.question == "What is this?"


@pytest.mark.parametrize(
    ("target", "alternatives"),
    [
        (None, ()),
        ("yes", ("yes",)),
        (["yes", "ja"], ("yes", "ja")),
        (True, ("true",)),
        (1.5, ("1.5",)),
        ({"a": 1}, ('{"a": 1}',)),
        ([[1, 2]], ("[1, 2]",)),
    ],
)
def test_a_target_may_be_a_value_or_a_list_of_alternatives(
    target: Any, alternatives: tuple[str, ...]
) -> None:
    assert build_sample({"input": "?", "target": target}).target == alternatives


def test_files_may_be_text_base64_or_a_path() -> None:
    files = {"a.txt": "a", "./b/c.bin": {"base64": "AP8="}, "d": {"source": "d.csv"}}
    sample_files = build_sample({"input": "?", "files": files}).files
    assert sample_files == {
        "a.txt": "a",
        "b/c.bin": EncodedFile(base64="AP8="),
        "d": SourceFile(source="d.csv"),
    }
    assert isinstance(sample_files["b/c.bin"], EncodedFile)
    assert sample_files["b/c.bin"].content == b"\0\xff"


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({}, "the key 'input' is missing"),
        ({"input": " \n"}, "input: no message of the user asks for anything"),
        ({"input": 5}, "input: input should be a valid tuple"),
        ({"input": []}, "input: no message of the user asks for anything"),
        ({"input": [{"role": "tool", "content": "x"}]}, "one of system, user, assistant"),
        ({"input": "?", "id": ""}, "id: string should have at least 1 character"),
        ({"input": "?", "id": "a\nb"}, "id: an id is one line of visible characters"),
        ({"input": "?", "id": True}, "id: input should be a valid string"),
        ({"input": "?", "files": {"/etc/x": ""}}, "'/etc/x' is no path in a workspace"),
        ({"input": "?", "files": {"a/../../x": ""}}, "'a/../../x' is no path in a workspace"),
        ({"input": "?", "files": {"a": {"base64": "?"}}}, "its base64 cannot be read"),
        ({"input": "?", "files": "a"}, "files: input should be a valid dictionary"),
        ({"input": "?", "metadata": 5}, "metadata: input should be a valid dictionary"),
        ({"input": "?", "setup": 5}, "setup: input should be a valid string"),
        ({"input": "\ud800"}, "it has text that is no Unicode"),
        ({"input": "?", "id": "a", "metadata": {"x": "\udfff"}}, "it has text that is no Unicode"),
    ],
)
def test_an_invalid_row_is_refused(fields: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InvalidSample) as refused:
        build_sample(fields)
    assert sentence in str(refused.value)


def test_a_sample_without_an_id_gets_a_hash_of_its_content() -> None:
    sample, same = build_sample({"input": "a"}), build_sample({"input": "a", "metadata": {"x": 1}})
    assert sample.id == same.id
    assert sample.id != build_sample({"input": "b"}).id
    assert sample.id != build_sample({"input": "a", "target": "b"}).id


def test_a_sample_comes_back_from_json() -> None:
    files = {"a": "a", "b": {"base64": "AP8="}}
    sample = build_sample({"input": "a", "target": ["b"], "files": files, "metadata": {"c": [1]}})
    assert Sample.model_validate_json(sample.model_dump_json()) == sample


def test_each_attempt_has_its_own_deterministic_conversation_id() -> None:
    ids = {
        conversation_id(batch, sample, epoch, attempt)
        for batch in ("a", "a-b")
        for sample in ("c", "b-c")
        for epoch in (0, 1)
        for attempt in (0, 1)
    }
    assert len(ids) == 16
    assert all(str(UUID(identifier)) == identifier for identifier in ids)
    assert conversation_id("a", "b", 0) == "3368a426-c9ab-5673-b2bc-036f592b6c08"
