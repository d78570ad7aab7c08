"""The front matter of real markdown files."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.agent.knowledge.skills import MAX_FRONT_MATTER_CHARS, split_front_matter


@pytest.mark.parametrize(
    ("written", "fields"),
    [
        ("name: git\nversion: 1.0\nok: no", {"name": "git", "version": "1.0", "ok": "no"}),
        ("triggers:\n- git\n- pull request", {"triggers": ["git", "pull request"]}),
        ("triggers: [git, hub]", {"triggers": ["git", "hub"]}),
        ("globs:\nalwaysApply: false", {"globs": "", "alwaysApply": "false"}),
        ("globs: *.ts,*.tsx", {"globs": "*.ts,*.tsx"}),
        ("paths:\n  - **/*.ts\n  - src/*", {"paths": ["**/*.ts", "src/*"]}),
        ("globs: {src,lib}/**/*.ts", {"globs": "{src,lib}/**/*.ts"}),
        ("description: Use this when: it's due", {"description": "Use this when: it's due"}),
        ('description: "PDFs" and more: all', {"description": '"PDFs" and more: all'}),
        ("a: |\n  x: *y\nb: [z]\nglobs: *.py", {"a": "x: *y\n", "b": ["z"], "globs": "*.py"}),
        ("", {}),
    ],
)
def test_fields_are_parsed_as_their_author_meant_them(written: str, fields: dict[str, Any]) -> None:
    assert split_front_matter(f"---\n{written}\n---\nThe text.\n") == (fields, "The text.\n")


@pytest.mark.parametrize(
    "text",
    ["# A title\n", "", "---\nnothing closes this\n", "---\nA word.\n---\n", "x\n---\na: b\n---\n"],
)
def test_a_file_without_front_matter_is_all_text(text: str) -> None:
    assert split_front_matter(text) == ({}, text)


def test_other_line_ends_and_a_byte_order_mark_are_no_matter() -> None:
    assert split_front_matter("\ufeff---\r\nname: a\r\n--- \r\nText\r\n") == (
        {"name": "a"},
        "Text\n",
    )


@pytest.mark.parametrize(
    "written",
    ["a: [*.ts, *.js]", "- a\nb: c", "\ta: b", 'a: "\\UFFFFFFFF"', "a:\n  {b\nc: d"],
)
def test_invalid_front_matter_is_refused_with_a_reason(written: str) -> None:
    with pytest.raises(ValueError, match=r"^its front matter is not YAML \("):
        split_front_matter(f"---\n{written}\n---\nText\n")


def test_a_front_matter_that_a_parser_would_choke_on_is_refused() -> None:
    with pytest.raises(ValueError, match="over 16,384 characters"):
        split_front_matter(f"---\na: {'x' * MAX_FRONT_MATTER_CHARS}\n---\n")


def test_deeply_nested_brackets_are_refused() -> None:
    with pytest.raises(ValueError, match="over 32 brackets deep"):
        split_front_matter(f"---\na: {'[{' * 1000}\n---\n")


def test_yaml_aliases_are_not_expanded() -> None:
    rows = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    rows += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 30)]
    fields, _ = split_front_matter("---\n" + "\n".join(rows) + "\n---\n")
    assert len(fields) == 30


@given(st.text(alphabet=st.sampled_from(list("ab:-[]{}&*!|>'\"#%@`,? \n\t\\0xU")), max_size=80))
def test_any_head_is_read_or_refused(written: str) -> None:
    try:
        fields, text = split_front_matter(f"---\n{written}\n---\nText\n")
    except ValueError:
        return
    assert isinstance(fields, dict)
    assert text.endswith("Text\n")
