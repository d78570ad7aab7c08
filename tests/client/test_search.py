"""Conversations as they are found in Temporal itself."""

import uuid

import temporalio.client
from google.protobuf.duration_pb2 import Duration
from temporalio.api.workflowservice.v1 import RegisterNamespaceRequest

from client.client import Client
from client.converter import CONVERTER
from client.search import missing, register
from embedded.temporal import TemporalServer
from tests.house import House, says
from workflows.operators import ATTRIBUTES


async def a_namespace(temporal: temporalio.client.Client) -> temporalio.client.Client:
    """A client of a namespace that knows nothing of us."""
    name = f"fresh-{uuid.uuid4()}"
    retention = Duration(seconds=86400)
    await temporal.workflow_service.register_namespace(
        RegisterNamespaceRequest(namespace=name, workflow_execution_retention_period=retention)
    )
    address = temporal.service_client.config.target_host
    return await temporalio.client.Client.connect(address, namespace=name, data_converter=CONVERTER)


async def test_what_is_missing_is_registered_once(
    temporal: temporalio.client.Client, house: House
) -> None:
    fresh = await a_namespace(temporal)
    assert await missing(fresh) == list(ATTRIBUTES)
    client = Client(fresh, house.client.store)
    assert not await client.searchable()
    assert await register(fresh) == [key.name for key in ATTRIBUTES]
    assert await register(fresh) == []
    assert not await client.searchable(), "it was asked once"
    assert await Client(fresh, house.client.store).searchable()
    assert not await Client(fresh, house.client.store, search_attributes="off").searchable()


async def test_the_embedded_server_knows_all_of_them(temporal_server: TemporalServer) -> None:
    assert await missing(await temporalio.client.Client.connect(temporal_server.address)) == []


async def test_a_conversation_is_found_before_and_after_a_worker_takes_it_up(house: House) -> None:
    tag = str(uuid.uuid4())
    client = Client(
        house.client.temporal,
        house.client.store,
        task_queue=house.client.task_queue,
        address="s3://bucket",
    )
    conversation = await client.start(
        "Say what\nyou see.", house.spec(says("Nothing."), tags=(tag,))
    )
    found = await until_found(client, f'PerdureStatus="idle" AND PerdureTags="{tag}"')
    assert found.id == conversation.workflow_id
    described = await conversation.handle.describe()
    assert await described.static_summary() == "Say what you see."
    assert f"s3://bucket/users/local/conversations/{conversation.id}/" in str(
        await described.static_details()
    )
    async with house.worker():
        await conversation.finished()
        await until_found(client, f'PerdureStatus="finished" AND PerdureTags="{tag}"')


async def until_found(client: Client, query: str) -> temporalio.client.WorkflowExecution:
    """The one workflow of the query, as soon as Temporal has indexed it."""
    while True:
        async for one in client.temporal.list_workflows(query):
            return one


async def test_a_namespace_without_them_takes_conversations_all_the_same(
    temporal: temporalio.client.Client, house: House
) -> None:
    client = Client(await a_namespace(temporal), house.client.store, task_queue="fresh")
    alone = House(client, house.world, house.folder)
    async with alone.worker():
        conversation = await client.start("Go.", alone.spec(says("Gone.")))
        assert (await conversation.finished()).status == "finished"
