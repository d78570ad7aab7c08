"""Keys of objects: no id leaves its prefix."""

from uuid import UUID, uuid4, uuid5

import pytest

from perdure.storage.keys import (
    conversation_prefix,
    event_id,
    event_key,
    response_key,
    start_after,
)

CONVERSATION = "01890a5d-ac96-774b-bcce-b302099a8057"


def test_the_layout_is_the_one_on_the_design_page() -> None:
    assert (
        conversation_prefix("ada@example.org", CONVERSATION)
        == f"users/ada@example.org/conversations/{CONVERSATION}/"
    )
    event = uuid5(UUID(CONVERSATION), "7")
    assert event_id(CONVERSATION, 7) == str(event)
    assert event_key(CONVERSATION, 7) == f"events/000007_{event}.json"
    assert response_key(7) == "responses/000007.json"


def test_the_keys_of_slots_sort_as_the_slots_do() -> None:
    seqs = [0, 1, 9, 10, 99, 100, 999_999]
    keys = [event_key(CONVERSATION, seq) for seq in seqs]
    assert keys == sorted(keys)
    for seq in seqs[1:]:
        assert event_key(CONVERSATION, seq - 1) < start_after(seq) < event_key(CONVERSATION, seq)


USERS = ["", ".", "..", "a/b", "../a", "a b", "ä", "a\n", "a\0", "x" * 129, "a\\b", "a%2fb"]


@pytest.mark.parametrize("user_id", USERS)
def test_a_user_id_that_could_leave_its_prefix_is_refused(user_id: str) -> None:
    with pytest.raises(ValueError, match="is not a user id: use 1 to 128 letters"):
        conversation_prefix(user_id, CONVERSATION)


@pytest.mark.parametrize("user_id", ["a", "...", "ada.lovelace_1-2@example.org", "x" * 128])
def test_a_plain_user_id_is_accepted(user_id: str) -> None:
    assert user_id in conversation_prefix(user_id, CONVERSATION)


@pytest.mark.parametrize(
    "conversation_id",
    [
        "",
        "..",
        "conv-1",
        f"{CONVERSATION}/..",
        CONVERSATION.upper(),
        CONVERSATION.replace("-", ""),
        f"{{{CONVERSATION}}}",
        f"urn:uuid:{CONVERSATION}",
        f"{CONVERSATION}\n",
    ],
)
def test_a_conversation_id_has_one_spelling(conversation_id: str) -> None:
    with pytest.raises(ValueError, match="is not a conversation id: use a UUID"):
        conversation_prefix("ada", conversation_id)


def test_any_uuid_is_a_conversation_id() -> None:
    assert conversation_prefix("ada", str(uuid4()))


@pytest.mark.parametrize("seq", [-1, 1_000_000])
def test_a_slot_that_would_not_sort_is_refused(seq: int) -> None:
    with pytest.raises(ValueError, match="A log has slots 0 to 999,999"):
        event_key(CONVERSATION, seq)
