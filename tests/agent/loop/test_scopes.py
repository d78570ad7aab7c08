"""The scope of a noted value, and the keys that cannot be noted."""

import pytest

from perdure.agent.loop.scopes import find_key_error, parse_key


@pytest.mark.parametrize(
    ("key", "scope", "name"),
    [
        ("user:tone", "user", "tone"),
        ("app:rates", "app", "rates"),
        ("plan", "own", "plan"),
        ("my app:plan", "own", "my app:plan"),
        ("app", "own", "app"),
    ],
)
def test_the_prefix_of_a_key_is_its_scope(key: str, scope: str, name: str) -> None:
    assert parse_key(key) == (scope, name)


@pytest.mark.parametrize(
    ("keys", "error"),
    [
        (["plan", "a plan / of mine", "app:rates", "user:a.b-c_1"], None),
        (["app:" + "x" * 128], None),
        (["plan", "app:" + "x" * 129], "after app: use 1 to 128 letters"),
        (["user:a/b"], "after user: use 1 to 128 letters"),
        (["app:"], "after app: use 1 to 128 letters"),
        ([""], "needs a key: it is empty"),
    ],
)
def test_a_shared_key_is_a_plain_word_and_no_key_is_empty(
    keys: list[str], error: str | None
) -> None:
    key_error = find_key_error(keys)
    assert key_error is None if error is None else error in str(key_error)
