"""Registering search attributes, and finding conversations by them."""

import uuid

import pytest
import temporalio.client
from google.protobuf.duration_pb2 import Duration
from temporalio.api.workflowservice.v1 import RegisterNamespaceRequest

from perdure.client.client import Client
from perdure.embedded.temporal import TemporalServer
from perdure.errors import Unreachable
from perdure.temporal.converter import CONVERTER
from perdure.temporal.register_attributes import (
    missing_attributes,
    register_attributes,
)
from perdure.temporal.search_attributes import ATTRIBUTES
from tests.harness import ConversationHarness, text_answer


async def create_namespace(temporal: temporalio.client.Client) -> temporalio.client.Client:
    """A client of a namespace that knows nothing of us."""
    name = f"fresh-{uuid.uuid4()}"
    retention = Duration(seconds=86400)
    await temporal.workflow_service.register_namespace(
        RegisterNamespaceRequest(namespace=name, workflow_execution_retention_period=retention)
    )
    address = temporal.service_client.config.target_host
    return await temporalio.client.Client.connect(address, namespace=name, data_converter=CONVERTER)


async def test_missing_search_attributes_are_registered_once(
    temporal: temporalio.client.Client, harness: ConversationHarness
) -> None:
    fresh = await create_namespace(temporal)
    assert await missing_attributes(fresh) == list(ATTRIBUTES)
    client = Client(fresh, harness.client.store)
    assert not await client.has_search_attributes()
    assert await register_attributes(fresh) == [key.name for key in ATTRIBUTES]
    assert await register_attributes(fresh) == []
    assert not await client.has_search_attributes(), "it was asked once"
    assert not await client.as_user("anna").has_search_attributes(), "nor for another user"
    assert await Client(fresh, harness.client.store).has_search_attributes()
    assert not await Client(
        fresh, harness.client.store, search_attributes="off"
    ).has_search_attributes()


async def test_a_server_that_does_not_list_its_search_attributes_counts_as_without(
    temporal: temporalio.client.Client, harness: ConversationHarness
) -> None:
    address = temporal.service_client.config.target_host
    stranger = await temporalio.client.Client.connect(address, namespace=f"no-{uuid.uuid4()}")
    with pytest.raises(Unreachable, match="does not list its search attributes"):
        await missing_attributes(stranger)
    assert not await Client(stranger, harness.client.store).has_search_attributes()


async def test_the_embedded_server_knows_all_search_attributes(
    temporal_server: TemporalServer,
) -> None:
    assert (
        await missing_attributes(await temporalio.client.Client.connect(temporal_server.address))
        == []
    )


async def test_a_conversation_is_found_before_and_after_a_worker_takes_it_up(
    harness: ConversationHarness,
) -> None:
    tag = str(uuid.uuid4())
    client = Client(
        harness.client.temporal,
        harness.client.store,
        task_queue=harness.client.task_queue,
        store_address="s3://bucket",
    )
    conversation = await client.start(
        "Say what\nyou see.", harness.spec(text_answer("Nothing."), tags=(tag,))
    )
    execution = await wait_until_found(client, f'PerdureStatus="running" AND PerdureTags="{tag}"')
    assert execution.id == conversation.workflow_id
    described = await conversation.handle.describe()
    assert await described.static_summary() == "Say what you see."
    assert f"s3://bucket/users/local/conversations/{conversation.id}/" in str(
        await described.static_details()
    )
    async with harness.worker():
        await conversation.wait_for_turn()
        await wait_until_found(client, f'PerdureStatus="finished" AND PerdureTags="{tag}"')


async def wait_until_found(client: Client, query: str) -> temporalio.client.WorkflowExecution:
    """The one workflow of the query, as soon as Temporal has indexed it."""
    while True:
        async for workflow in client.temporal.list_workflows(query):
            return workflow


async def test_a_namespace_without_search_attributes_takes_conversations(
    temporal: temporalio.client.Client, harness: ConversationHarness
) -> None:
    client = Client(await create_namespace(temporal), harness.client.store, task_queue="fresh")
    alone = ConversationHarness(client, harness.resources, harness.folder)
    async with alone.worker():
        conversation = await client.start("Go.", alone.spec(text_answer("Gone.")))
        assert (await conversation.wait_for_turn()).status == "finished"
