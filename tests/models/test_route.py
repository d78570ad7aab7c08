"""What a server is told beside a request."""

from agent.spec import ModelSpec
from models.model import KEY_HEADER, NUMBER_HEADER, PURPOSE_HEADER, Request
from models.route import headers_of


def test_a_server_of_ones_own_is_told_which_call_it_is() -> None:
    model = ModelSpec(name="openai/m", api_base="http://localhost:1/v1")
    told = headers_of(Request(model, [], purpose="grade", number=2, key="c/7"))
    assert told == {PURPOSE_HEADER: "grade", NUMBER_HEADER: "2", KEY_HEADER: "c/7"}


def test_a_provider_is_told_nothing() -> None:
    assert headers_of(Request(ModelSpec(name="openai/m"), [], number=2, key="c/7")) == {}
