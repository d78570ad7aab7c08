"""The code of docs/extending.md works, installed as a package and by `module:attribute`."""

import asyncio
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from perdure.activities.support.extensions import CONDENSER_GROUP
from perdure.agent.calls.answer import parse_response
from perdure.agent.calls.completion import Completion
from perdure.agent.spec import AmortizedCondenser, CustomCondenser, ModelSpec
from perdure.agent.view.condense.plan import CondensationPlan
from perdure.agent.view.transcript import Transcript
from perdure.agent.view.view import View
from perdure.cli.agent_options import build_agent
from perdure.cli.declarations.agent_fields import AgentOptions
from perdure.cli.rendering.events import describe_call, describe_event
from perdure.client.agents.sources import AgentSources
from perdure.datasets.batch import parse_batch_toml
from perdure.evaluation.sample import Sample
from perdure.evaluation.score import Outcome, parse_score
from perdure.evaluation.scorers.custom import CustomScorer
from perdure.events.content import Message, MessageToolCall
from perdure.events.custom import CustomAction, CustomEvent, CustomObservation
from perdure.events.entry import make_entry, parse_entry
from perdure.events.event import UnknownEvent, dump_event, parse_event
from perdure.events.projection import summarize
from perdure.events.tools import ActionEvent, AgentErrorEvent, ObservationEvent
from perdure.exports import notes
from perdure.exports.format import ExportMetadata
from perdure.exports.formats import FORMATS, find_format, list_format_names
from perdure.gateway.gateway import Gateway
from perdure.gateway.serve import connect_client, load_client_class
from perdure.models.model import ModelRefused
from perdure.models.router import ModelRouter
from perdure.references import BadReference, load_named
from perdure.settings.errors import SettingsError
from perdure.settings.settings import Settings
from perdure.storage.log.event_log import EventLog
from perdure.storage.open import open_store
from perdure.tools.catalog import load_tools
from perdure.tools.errors import ToolNotFound
from tests.builders import CONVERSATION, ORIGIN, TIMESTAMP, entries, id_of, prompt, user
from tests.distributions import installed
from tests.logs import add_events
from tests.models.requests import ask, text_in

NO_AGENTS = AgentSources(Settings())

PAGE = (Path(__file__).parents[1] / "docs" / "extending.md").read_text()
PYTHON = re.findall(r"```python\n# (\w+\.py)\n(.*?)```", PAGE, re.DOTALL)
TOML = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
POINTS = tomllib.loads(TOML[0])["project"]["entry-points"]
STORM = {"kind": "StormEvent", "id": id_of(4), "timestamp": TIMESTAMP, "source": "environment"}


@pytest.fixture
def package(tmp_path: Path) -> Iterator[Path]:
    """The package of the page, installed."""
    with installed(tmp_path / "site", dict(PYTHON), POINTS):
        yield tmp_path


@pytest.fixture
def bare(tmp_path: Path) -> Iterator[Path]:
    """The modules of the page, without entry points."""
    with installed(tmp_path / "site", dict(PYTHON), {}):
        yield tmp_path


def forecast_call(arguments: str) -> Completion:
    call = MessageToolCall(id="c", name="forecast", arguments=arguments)
    message = Message(role="assistant", tool_calls=(call,))
    return Completion(
        id="r", model="m", message=message, finish_reason="tool_calls", received=TIMESTAMP
    )


@pytest.mark.usefixtures("package")
def test_tools_of_a_package_have_names() -> None:
    assert list(load_tools(["weather", "forecast", "finish"])) == ["weather", "forecast", "finish"]
    asyncio.run(build_agent(AgentOptions(tools="weather,finish", model="m"), NO_AGENTS))


@pytest.mark.usefixtures("bare")
def test_without_a_package_tools_have_references() -> None:
    assert list(load_tools(["weather_tools:weather"])) == ["weather"]
    with pytest.raises(ToolNotFound, match="There is no tool 'weather'"):
        load_tools(["weather"])


@pytest.mark.usefixtures("package")
def test_a_broken_entry_point_is_a_sentence(tmp_path: Path) -> None:
    broken = {"perdure.tools": {"broken": "weather_tools:nothing"}}
    with (
        installed(tmp_path / "other", {}, broken),
        pytest.raises(ToolNotFound, match="Tool 'broken': module 'weather_tools' has no attribute"),
    ):
        load_tools(["broken"])


@pytest.mark.usefixtures("package")
async def test_a_typed_action_and_observation_are_read_back_as_such() -> None:
    [event] = parse_response(forecast_call('{"city": "Oslo"}'), load_tools(["forecast"]))
    assert isinstance(event, ActionEvent)
    stored = make_entry(3, event.model_copy(update={"id": id_of(3)}), ORIGIN)
    action_event = parse_entry(3, stored.body).event
    assert isinstance(action_event, ActionEvent)
    action = action_event.action
    assert isinstance(action, CustomAction)
    assert action.model_dump() == {"kind": "ForecastAction", "city": "Oslo", "days": 1}
    assert describe_call("forecast", action) == "forecast for Oslo"
    assert summarize(stored).is_error is None
    observation = await load_tools(["forecast"])["forecast"].run(action, None)  # type: ignore[arg-type]
    answer = ObservationEvent(
        id=id_of(4),
        timestamp=TIMESTAMP,
        action_id=id_of(3),
        tool_name="forecast",
        tool_call_id="c",
        observation=observation,
    )
    answered = parse_entry(4, make_entry(4, answer, ORIGIN).body).event
    assert isinstance(answered, ObservationEvent)
    assert isinstance(answered.observation, CustomObservation)
    assert answered == answer
    transcript = Transcript()
    add_events(transcript.view, [prompt(), user(), action_event, answered])
    assert transcript.messages()[-1]["content"] == "Oslo: 12 degrees"


@pytest.mark.usefixtures("bare")
def test_an_action_that_no_package_registers_is_refused_before_it_is_written() -> None:
    tools = load_tools(["weather_forecast:FORECAST"])
    events = parse_response(forecast_call('{"city": "Oslo"}'), tools)
    assert isinstance(events[1], AgentErrorEvent)
    assert "no package has 'ForecastAction' among its 'perdure.events'" in events[1].error


@pytest.mark.usefixtures("package")
def test_a_scorer_of_a_package_is_stored_as_its_reference() -> None:
    table = 'name = "a"\ndataset = "a.jsonl"\nmodel = "m"\nscorers = ["rainy", {kind = "rainy", '
    batch = parse_batch_toml(table + 'name = "sunny", options = {word = "sun"}}]')
    rainy, sunny = batch.scorers
    assert isinstance(rainy, CustomScorer)
    assert (rainy.function, rainy.score_name) == ("weather_scorers:mentions_rain", "rainy")
    assert isinstance(sunny, CustomScorer)
    assert (sunny.score_name, sunny.options) == ("sunny", {"word": "sun"})
    sample = Sample.model_validate({"id": "a", "input": "?"})
    score = load_named("perdure.scorers", "rainy")(sample, Outcome(text="It rains: rain."))
    assert parse_score(score).value is True


@pytest.mark.usefixtures("bare")
def test_an_unknown_scorer_is_named_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match="there is no scorer 'rainy'"):
        parse_batch_toml('name = "a"\ndataset = "a.jsonl"\nmodel = "m"\nscorers = ["rainy"]')
    [scorer] = parse_batch_toml(TOML[1]).scorers
    assert isinstance(scorer, CustomScorer)


@pytest.mark.usefixtures("package")
def test_a_condenser_of_a_package_plans_by_the_cut_points() -> None:
    function = load_named(CONDENSER_GROUP, "by_half")
    view = View()
    view.add_entries(entries([prompt(), *map(user, "abcdefghi")]))
    plan = function(view, {}, "size")
    assert plan == CondensationPlan(2, 5, AmortizedCondenser())
    for name in ("by_half", "weather_condensers:forget_half"):
        spec = asyncio.run(build_agent(AgentOptions(condenser=name, model="m"), NO_AGENTS))
        assert spec.condenser == CustomCondenser(function=name)


@pytest.mark.parametrize("name", ["subtitles", "weather_formats:SUBTITLES"])
@pytest.mark.usefixtures("package")
def test_a_format_of_a_package_exports(name: str) -> None:
    assert list_format_names() == [*(format.name for format in FORMATS), "subtitles"]
    parts = find_format(name).parts(ExportMetadata(CONVERSATION), entries([user("Hello.")]))
    assert b"".join(part.body for part in parts) == f"{TIMESTAMP}\nHello.\n\n".encode()


@pytest.mark.usefixtures("package")
def test_what_is_no_format_is_refused() -> None:
    with pytest.raises(BadReference, match="leads to a function, and it must be a Format"):
        find_format("weather_formats:write")


@pytest.mark.usefixtures("package")
async def test_a_store_of_a_package_is_opened_by_its_scheme() -> None:
    store = open_store("memory://tests")
    log = EventLog(store, "local", CONVERSATION)
    await log.append([user("Hello.")], base=0, origin=ORIGIN)
    assert [entry.seq for entry in await log.read(0, 10)] == [0]
    assert open_store("memory://tests") is store
    with pytest.raises(ValueError, match="is not the URL of a store"):
        open_store("nowhere://tests")


@pytest.mark.parametrize("name", ["echo:loud", "python:weather_models:Echo"])
@pytest.mark.usefixtures("package")
async def test_a_model_of_a_package_answers(name: str) -> None:
    answer = await ask(ModelRouter(), ModelSpec(name=name))
    assert text_in(answer).isupper()
    assert answer.usage.model == name


async def test_a_model_that_cannot_be_imported_is_refused() -> None:
    with pytest.raises(ModelRefused, match="module 'no_such_module' cannot be found"):
        await ask(ModelRouter(), ModelSpec(name="python:no_such_module:Echo"))


@pytest.mark.usefixtures("package")
def test_an_event_of_a_package_is_read_and_speaks_for_itself() -> None:
    fields = {**STORM, "force": 9}
    event = parse_event(fields)
    assert isinstance(event, CustomEvent)
    assert dump_event(event) == fields
    entry = make_entry(4, event, ORIGIN)
    assert parse_entry(4, entry.body).event == event
    assert (summarize(entry).kind, summarize(entry).value) == ("StormEvent", None)
    assert describe_event(event) == ("weather", "storm of force 9")
    assert notes.describe_event(event) == "There was a storm of force 9."
    transcript = Transcript()
    add_events(transcript.view, [prompt(), user(), event])
    assert transcript.messages()[-1]["content"] == "A storm of force 9 is coming."


@pytest.mark.usefixtures("package")
def test_an_event_that_its_package_cannot_read_stays_as_it_is() -> None:
    fields = {**STORM, "speed": 9}
    event = parse_event(fields)
    assert isinstance(event, UnknownEvent)
    assert dump_event(event) == fields


@pytest.mark.usefixtures("bare")
def test_without_its_package_an_event_is_unknown() -> None:
    assert isinstance(parse_event({**STORM, "force": 9}), UnknownEvent)


@pytest.mark.usefixtures("package")
async def test_a_gateway_has_the_client_that_its_settings_name(tmp_path: Path) -> None:
    settings = Settings(gateway_client="plans:PlanClient", store=f"file://{tmp_path}/store")
    async with connect_client(settings) as client:
        gateway = Gateway(client, settings)
        assert gateway.client_for("team-north").session_limit == 20
        assert gateway.client_for("anna").session_limit == 1


@pytest.mark.parametrize(
    ("reference", "reason"),
    [
        ("plans:Nothing", "'plans:Nothing' cannot be loaded: module 'plans' has no attribute"),
        ("weather_tools:weather", "'weather_tools:weather' is no subclass of perdure.Client"),
    ],
)
@pytest.mark.usefixtures("package")
def test_a_gateway_without_its_client_is_a_sentence(reference: str, reason: str) -> None:
    with pytest.raises(SettingsError, match=reason):
        load_client_class(reference)
