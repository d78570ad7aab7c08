"""The ids of workflows: each is of one user, and can be taken apart again."""

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.settings.settings import Settings
from perdure.storage.keys import batch_prefix, conversation_prefix
from perdure.temporal.names import (
    DEFAULT_QUEUE,
    DEFAULT_USER,
    ask_workflow_prefix,
    batch_workflow_id,
    child_workflow_id,
    conversation_id_of,
    conversation_workflow_id,
    delivery_workflow_id,
    owner_of,
    sessions_workflow_id,
    workspace_folder,
)

UUIDS = st.uuids().map(str)
NAMES = st.text(string.ascii_letters + string.digits + "._-", min_size=1, max_size=20).filter(
    lambda name: name[0].isalnum()
)
USERS = st.one_of(
    st.just(DEFAULT_USER),
    UUIDS,
    st.text(string.ascii_letters + string.digits + "._@-", min_size=1, max_size=20).filter(
        lambda user_id: user_id not in (".", "..")
    ),
)


def test_the_defaults_are_those_of_the_settings() -> None:
    assert Settings.model_fields["user"].default == DEFAULT_USER == "local"
    assert Settings.model_fields["task_queue"].default == DEFAULT_QUEUE == "perdure"


def test_the_ids_of_the_default_user_have_no_user() -> None:
    assert conversation_workflow_id("local", "0-1") == "conv-0-1"
    assert batch_workflow_id("local", "sums") == "batch-sums"
    assert conversation_workflow_id("anna@example.org", "0-1") == "conv-anna@example.org:0-1"
    assert batch_workflow_id("anna", "sums") == "batch-anna:sums"
    assert ask_workflow_prefix("anna", "0-1") == "ask-anna:0-1-"
    assert sessions_workflow_id("anna", "perdure") == "sessions-anna"
    assert sessions_workflow_id("anna", "other") == "sessions-anna:other"


@given(USERS, UUIDS)
def test_the_id_of_a_conversations_workflow_can_be_taken_apart(
    user_id: str, conversation_id: str
) -> None:
    conversation_prefix(user_id, conversation_id)  # both are valid
    workflow_id = conversation_workflow_id(user_id, conversation_id)
    assert conversation_id_of(workflow_id) == conversation_id
    assert (owner_of(workflow_id) or "local") == user_id
    for queue in ("perdure", "other-queue", "a:b"):
        assert (owner_of(sessions_workflow_id(user_id, queue)) or "local") == user_id
    assert (owner_of(ask_workflow_prefix(user_id, conversation_id)) or "local") == user_id
    delivery = delivery_workflow_id(user_id, "0" * 16, conversation_id)
    assert (owner_of(delivery) or "local") == user_id


@given(USERS, NAMES, st.integers(0, 999))
def test_the_user_of_a_batch_and_of_its_shards_can_be_read(
    user_id: str, name: str, shard: int
) -> None:
    batch_prefix(user_id, name)
    workflow_id = batch_workflow_id(user_id, name)
    assert (owner_of(workflow_id) or "local") == user_id
    assert owner_of(f"{workflow_id}/{shard}") == owner_of(workflow_id)


@given(USERS, NAMES, USERS, NAMES, st.integers(0, 99), UUIDS, UUIDS)
def test_no_two_workflows_have_one_id(
    user: str, name: str, other: str, other_name: str, shard: int, id: str, other_id: str
) -> None:
    if (user, name) != (other, other_name):
        ids = [batch_workflow_id(user, name), batch_workflow_id(other, other_name)]
        assert len({*ids, *(f"{workflow_id}/{shard}" for workflow_id in ids)}) == 4
    if (user, id) != (other, other_id):
        queues = ("perdure", "other")
        sessions = [sessions_workflow_id(it, queue) for it in {user, other} for queue in queues]
        assert len(set(sessions)) == len(sessions)
        assert conversation_workflow_id(user, id) != conversation_workflow_id(other, other_id)
        one, two = ask_workflow_prefix(user, id), ask_workflow_prefix(other, other_id)
        assert not one.startswith(two)
        assert not two.startswith(one)
        folder, other_folder = workspace_folder(user, id), workspace_folder(other, other_id)
        assert not f"{folder}/".startswith(f"{other_folder}/")
        assert not f"{other_folder}/".startswith(f"{folder}/")


@given(USERS, UUIDS, UUIDS, NAMES)
def test_a_child_is_the_conversation_of_its_parents_user(
    user_id: str, parent: str, child: str, batch: str
) -> None:
    expected = conversation_workflow_id(user_id, child)
    for workflow_id in (
        conversation_workflow_id(user_id, parent),
        batch_workflow_id(user_id, batch),
        f"{batch_workflow_id(user_id, batch)}/7",
    ):
        assert child_workflow_id(workflow_id, child) == expected


@pytest.mark.parametrize("workflow_id", ["", "conv-", "another:one", "a-b:c", "test", "conv-0-1"])
def test_other_ids_have_no_user(workflow_id: str) -> None:
    assert owner_of(workflow_id) is None
