"""Reading secrets, and lending them to agents."""

from pathlib import Path

import pytest

from perdure.secrets.registry import Secrets, SecretUnavailable


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "FROM_FILE").write_text("a-value-in-a-file\n")
    return tmp_path


def refusal(secrets: Secrets, name: str) -> str:
    with pytest.raises(SecretUnavailable, match=r"\.$") as refused:
        secrets.value(name)
    sentence = str(refused.value)
    assert "\n" not in sentence
    return sentence


def test_a_value_is_in_a_file_or_in_the_environment(folder: Path) -> None:
    secrets = Secrets(folder, {"PERDURE_SECRET_FROM_ENV": "a-value-over-there"})
    assert secrets.value("FROM_FILE") == "a-value-in-a-file"
    assert secrets.value("FROM_ENV") == "a-value-over-there"


def test_a_file_goes_over_the_environment(folder: Path) -> None:
    secrets = Secrets(folder, {"PERDURE_SECRET_FROM_FILE": "a-value-over-there"})
    assert secrets.value("FROM_FILE") == "a-value-in-a-file"


def test_secrets_of_both_sources_are_masked_before_any_is_read(folder: Path) -> None:
    secrets = Secrets(folder, {"PERDURE_SECRET_FROM_ENV": "a-value-over-there"})
    text = "a-value-in-a-file, a-value-over-there"
    assert secrets.mask(text) == "<secret:FROM_FILE>, <secret:FROM_ENV>"
    assert secrets.names_in(text.encode()) == {"FROM_FILE", "FROM_ENV"}
    assert secrets.mask_bytes(b"\xff" + text.encode()[:17]) == b"\xff<secret:FROM_FILE>"


def test_a_text_that_grows_does_not_show_how_a_value_begins(folder: Path) -> None:
    secrets = Secrets(folder, {})
    assert secrets.mask_partial("it is a-value-in") == "it is "
    assert secrets.mask_partial("it is a-v") == "it is a-v", "which is in many texts"
    assert secrets.mask_partial("it is a-va") == "it is "
    assert secrets.mask("it is a-value-in") == "it is a-value-in"
    assert secrets.mask_partial("it is a-value-in-a-file.") == "it is <secret:FROM_FILE>."


def test_a_text_with_half_a_surrogate_pair_is_masked(folder: Path) -> None:
    assert Secrets(folder, {}).mask("\ud800a-value-in-a-file") == "\ud800<secret:FROM_FILE>"


def test_hidden_files_of_kubernetes_are_no_secrets(folder: Path) -> None:
    (folder / "..data").write_text("something-quite-usual")
    assert Secrets(folder, {}).mask("something-quite-usual") == "something-quite-usual"


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (b"short", "has a value of 5 bytes, and 8 to 65,536 can be kept secret"),
        (b"x" * 70_000, "has a value of 70,000 bytes"),
        (b"\xff\xfe binary", "is no text in UTF-8 without NULs"),
        (b"with a \x00 in it", "is no text in UTF-8 without NULs"),
    ],
)
def test_a_value_that_cannot_be_kept_secret_is_refused(
    folder: Path, value: bytes, reason: str
) -> None:
    (folder / "BAD").write_bytes(value)
    secrets = Secrets(folder, {})
    assert reason in refusal(secrets, "BAD")
    assert secrets.mask("a-value-in-a-file") == "<secret:FROM_FILE>"


def test_a_missing_secret_is_refused_with_the_place_to_set_it(folder: Path) -> None:
    assert "PERDURE_SECRET_NOWHERE" in refusal(Secrets(folder, {}), "NOWHERE")
    assert "PERDURE_SECRETS" in refusal(Secrets(None, {}), "NOWHERE")


def test_a_missing_secret_is_logged_once(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    secrets = Secrets(folder, {})
    for _ in range(2):
        refusal(secrets, "NOWHERE")
    assert caplog.text.count("The secret NOWHERE has no value") == 1


@pytest.mark.parametrize(
    "name",
    [
        "OPENAI_API_KEY",
        "AWS_SECRET_ACCESS_KEY",
        "AWS_SESSION_TOKEN",
        "TEMPORAL_API_KEY",
        "DB_PASSWORD",
    ],
)
def test_the_workers_own_keys_are_masked_and_lent_to_nobody(name: str) -> None:
    secrets = Secrets(None, {name: "sk-0123456789"})
    assert secrets.mask("sent sk-0123456789") == f"sent <secret:{name}>"
    assert "has no value" in refusal(secrets, name)


@pytest.mark.parametrize("name", ["AWS_ACCESS_KEY_ID", "MAX_TOKENS", "KEYBOARD", "PERDURE_SECRETS"])
def test_a_variable_that_is_no_key_is_not_masked(name: str) -> None:
    assert Secrets(None, {name: "0123456789"}).mask("0123456789") == "0123456789"


def test_the_path_of_a_key_is_not_masked(folder: Path) -> None:
    path = str(folder / "FROM_FILE")
    assert Secrets(None, {"TLS_KEY": path}).mask(path) == path


@pytest.mark.parametrize(
    "command",
    [
        "echo $TOKEN",
        "echo ${TOKEN:-none}",
        "echo %TOKEN%",
        "python3 -c 'import os; os.environ[\"TOKEN\"]'",
        "node -e 'process.env.TOKEN'",
        ": TOKEN; ./deploy.sh",
        "A=$TOKEN",
    ],
)
def test_a_command_names_a_secret_by_its_name_as_a_word(command: str) -> None:
    lent = Secrets(None, {"PERDURE_SECRET_TOKEN": "0123456789"}).lend(("TOKEN",))
    assert lent.values_named_in(command) == {"TOKEN": "0123456789"}


@pytest.mark.parametrize("command", ["echo $MY_TOKEN", "echo $TOKENS", "echo $token", "true"])
def test_a_longer_word_does_not_name_a_secret(command: str) -> None:
    lent = Secrets(None, {"PERDURE_SECRET_TOKEN": "0123456789"}).lend(("TOKEN",))
    assert lent.values_named_in(command) == {}


def test_only_an_input_that_is_just_a_name_becomes_the_value() -> None:
    lent = Secrets(None, {"PERDURE_SECRET_TOKEN": "0123456789"}).lend(("TOKEN",))
    assert lent.resolve_input("$TOKEN") == lent.resolve_input("${TOKEN}\n") == "0123456789"
    for text in ("TOKEN", "x $TOKEN", "$OTHER", ""):
        assert lent.resolve_input(text) == text


def test_no_value_is_in_a_repr(folder: Path) -> None:
    secrets = Secrets(folder, {"PERDURE_SECRET_TOKEN": "0123456789"})
    secrets.mask("look at all")
    lent = secrets.lend(("TOKEN", "FROM_FILE"))
    for holder in (secrets, lent, secrets.patterns(), secrets.masker()):
        assert "0123456789" not in repr(holder)
        assert "a-value" not in str(holder)
