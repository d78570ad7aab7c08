"""What a start gives besides the agent: a repository, descriptions of secrets, metadata."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.agent.spec import Agent
from perdure.agent.surroundings import check_repository, name_directory
from perdure.errors import Invalid


@pytest.mark.parametrize(
    ("url", "directory"),
    [
        ("https://example.org/owner/name.git", "name"),
        ("https://example.org/owner/name/", "name"),
        ("http://127.0.0.1:8000/name", "name"),
        ("git://example.org/deep/er/a.b-c", "a.b-c"),
    ],
)
def test_a_directory_is_called_as_the_last_part_of_the_url(url: str, directory: str) -> None:
    assert Agent("m", repository=url).repository == url
    assert name_directory(url) == directory


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"repository": "/etc"}, "no URL of a server"),
        ({"repository": "file:///etc"}, "no URL of a server"),
        ({"repository": "ext::sh -c id"}, "no URL of a server"),
        ({"repository": "git@example.org:a/b"}, "no URL of a server"),
        ({"repository": "https://[::1/a"}, "it is no URL"),
        ({"repository": "https://a:b@example.org/c"}, "a user or a token in it"),
        ({"repository": "https://token@example.org/c"}, "a user or a token in it"),
        ({"repository": "https://example.org/a?token=1"}, "has more than"),
        ({"repository": "https://example.org/a#b"}, "has more than"),
        ({"repository": "https://example.org/"}, "its last part is no name of a folder"),
        ({"repository": "https://example.org/a/.."}, "its last part is no name of a folder"),
        ({"repository": "https://example.org/a/.git"}, "its last part is no name of a folder"),
        ({"repository": "https://example.org/a", "branch": "--upload-pack=x"}, "branch: "),
        ({"repository": "https://example.org/a", "branch": "a b"}, "branch: "),
        ({"branch": "main"}, "of no repository"),
        ({"repository_token": "TOKEN"}, "of no repository"),
        (
            {"repository": "http://example.org/a", "repository_token": "TOKEN"},
            "in plain text: use https",
        ),
        ({"git_user_name": "Anna\nBen"}, "git_user_name: "),
        ({"git_user_email": "<a@example.org>"}, "git_user_email: "),
        ({"metadata": {str(n): "" for n in range(17)}}, "metadata: "),
        ({"metadata": {"a": 1}}, "metadata.a: "),
        ({"parent": "the other one"}, "parent: "),
        ({"app_name": ""}, "app_name: "),
        ({"secrets": {"not a name": ""}}, "secrets.0: "),
        ({"secrets": {"TOKEN": "x" * 501}}, "secret_descriptions.TOKEN: "),
    ],
)
def test_what_makes_no_sense_is_refused_with_its_field(fields: dict[str, Any], reason: str) -> None:
    with pytest.raises(Invalid) as refused:
        Agent("m", **fields)
    assert reason in str(refused.value)
    assert "token@" not in str(refused.value)


def test_secrets_may_be_a_table_of_what_they_are_for() -> None:
    agent = Agent("m", secrets={"TICKETS": "reads tickets", "OTHER": ""})
    assert agent.secrets == ("TICKETS", "OTHER")
    assert agent.secret_descriptions == {"TICKETS": "reads tickets"}
    assert Agent.model_validate_json(agent.model_dump_json()) == agent


def test_what_is_not_given_leaves_no_trace_in_the_log() -> None:
    names = {"repository", "branch", "metadata", "parent", "hidden", "secret_descriptions"}
    assert names.isdisjoint(Agent("m").model_dump())


@given(st.text(max_size=300))
def test_no_text_is_taken_for_a_path_or_a_command_of_git(text: str) -> None:
    try:
        url = check_repository(text)
    except ValueError:
        return
    assert url.startswith(("https://", "http://", "git://"))
    assert "/" not in name_directory(url)
    assert name_directory(url) not in ("", ".", "..", ".git")
