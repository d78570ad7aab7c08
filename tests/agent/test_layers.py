"""What each source says of an agent, merged by one pure function."""

from collections.abc import Sequence
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from perdure.agent.layers import Layer, Merged, change_sources, merge_layers

ABSENT = object()

numbers = st.integers(0, 3) | st.none()
words = st.sampled_from("abc")
servers = st.lists(st.builds(lambda n, u: {"name": n, "url": u}, words, words), max_size=3)
fields_of_agents = st.fixed_dictionaries(
    {},
    optional={
        "parallel": numbers,
        "system_prompt": words | st.none(),
        "tools": st.lists(words, max_size=2),
        "limits": st.dictionaries(st.sampled_from(["max_budget", "max_events"]), numbers),
        "mcp": servers | st.none(),
        "secrets": st.lists(words, max_size=3) | st.none(),
        "skills": st.fixed_dictionaries(
            {}, optional={"folders": st.lists(words, max_size=2), "workspace": st.booleans()}
        ),
    },
)
stacks = st.lists(fields_of_agents, max_size=5)


def merged(*layers: dict[str, Any]) -> Merged:
    """Merge layers that are called 0, 1 and so on, the weakest first."""
    return merge_layers([Layer(str(nth), fields) for nth, fields in enumerate(layers)])


def find(fields: Any, path: str) -> Any:
    """Find what a layer says at a path: a model of its own of what is merged."""
    for key in path.split("."):
        fields = fields.get(key, ABSENT) if isinstance(fields, dict) else ABSENT
    return fields


@given(stacks)
def test_the_strongest_that_says_something_decides(layers: list[dict[str, Any]]) -> None:
    result = merged(*layers)
    for path in ("parallel", "system_prompt", "tools", "limits.max_budget", "skills.workspace"):
        said = [
            (value, nth) for nth, it in enumerate(layers) if (value := find(it, path)) != ABSENT
        ]
        value = find(result.fields, path)
        assert value == (said[-1][0] if said else ABSENT)
        assert result.sources.get(path) == (str(said[-1][1]) if said else None)


@given(stacks)
def test_lists_are_joined_by_name_and_begin_anew_behind_null(layers: list[dict[str, Any]]) -> None:
    result = merged(*layers)
    for path in ("mcp", "secrets", "skills.folders"):
        items: dict[str, Any] = {}
        for layer in layers:
            value = find(layer, path)
            if value is None:
                items = {}
            elif value is not ABSENT:
                items |= {it["name"] if isinstance(it, dict) else it: it for it in value}
        joined = find(result.fields, path)
        assert (not items) if joined is ABSENT else joined == list(items.values())


@given(stacks, st.integers(0, 5))
def test_layers_that_were_merged_before_are_one_layer(
    layers: Sequence[dict[str, Any]], at: int
) -> None:
    first = merge_layers([Layer(str(nth), it) for nth, it in enumerate(layers[:at])])
    rest = [Layer(str(nth), it) for nth, it in enumerate(layers)][at:]
    both = merge_layers([Layer("first", first.fields, first.sources), *rest])
    assert both.fields == merged(*layers).fields
    assert both.sources == merged(*layers).sources


@given(stacks)
def test_every_field_has_a_source_and_every_source_a_field(layers: list[dict[str, Any]]) -> None:
    result = merged(*layers)
    paths = {
        f"{name}.{key}" if key else name
        for name, value in result.fields.items()
        for key in (value if isinstance(value, dict) and value else {"": None})
    }
    assert result.sources.keys() == paths


def test_null_is_a_value() -> None:
    result = merged({"limits": {"max_budget": 5.0}}, {"limits": {"max_budget": None}}, {})
    assert result.fields == {"limits": {"max_budget": None}}
    assert result.sources == {"limits.max_budget": "1"}


def test_a_list_tells_all_that_have_added_to_it() -> None:
    result = merged({"secrets": ["A"]}, {"secrets": ["B"]}, {"tags": ["x"]})
    assert result.fields["secrets"] == ["A", "B"]
    assert result.sources["secrets"] == "0, 1"


def test_another_model_drops_what_holds_of_the_former_alone() -> None:
    former = {"model": {"name": "a", "api_base": "http://x", "temperature": 0.5}}
    result = merged(former, {"model": "b"})
    assert result.fields["model"] == {"name": "b", "temperature": 0.5}
    assert result.sources == {"model.name": "1", "model.temperature": "0"}


def test_another_repository_drops_the_branch_and_the_token_of_the_former() -> None:
    first = {"repository": "https://a.org/b", "branch": "dev", "repository_token": "TOKEN"}
    other = {"repository": "https://c.org/d", "branch": "main"}
    assert merged(first, other).fields == other
    assert merged(first, other).sources == {"repository": "1", "branch": "1"}
    assert merged(first, {"repository": first["repository"], "parallel": 1}).fields == {
        **first,
        "parallel": 1,
    }
    assert merged(first, {"repository": None}).fields == {"repository": None}


def test_sizes_alone_are_those_of_the_summary_of_a_pipeline() -> None:
    stages = [{"kind": "window"}, {"kind": "llm_summary", "max_size": 240}]
    pipeline = {"condenser": {"kind": "pipeline", "condensers": stages}}
    sized = merged(pipeline, {"condenser": {"max_size": 9}}).fields["condenser"]
    assert sized["condensers"] == [{"kind": "window"}, {"kind": "llm_summary", "max_size": 9}]
    assert merged(pipeline, {"condenser": "none"}).fields["condenser"] == {"kind": "none"}
    both = merged({"condenser": {"max_size": 9}}, {"condenser": {"keep_first": 1}})
    assert both.fields["condenser"] == {"max_size": 9, "keep_first": 1}


def test_a_change_names_the_source_of_what_it_changed_alone() -> None:
    sources = {"limits.max_budget": "agent", "limits.max_events": "start", "tags": "start"}
    before = {"limits": {"max_budget": 1.0, "max_events": 9}, "tags": ["a"]}
    changes = {"limits": {"max_budget": 2.0, "max_events": 9}}
    assert change_sources(sources, before, changes, "configure") == {
        "limits.max_budget": "configure",
        "limits.max_events": "start",
        "tags": "start",
    }
