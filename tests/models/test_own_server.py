"""The headers that a server gets with a request."""

from perdure.agent.spec import ModelSpec
from perdure.models.model import KEY_HEADER, NUMBER_HEADER, PURPOSE_HEADER, Request
from perdure.models.own_server import perdure_headers


def test_a_self_hosted_server_gets_headers_that_identify_the_call() -> None:
    model = ModelSpec(name="openai/m", api_base="http://localhost:1/v1")
    headers = perdure_headers(Request(model, [], purpose="grade", number=2, key="c/7"))
    assert headers == {PURPOSE_HEADER: "grade", NUMBER_HEADER: "2", KEY_HEADER: "c/7"}


def test_a_provider_gets_no_headers_of_ours() -> None:
    assert perdure_headers(Request(ModelSpec(name="openai/m"), [], number=2, key="c/7")) == {}
