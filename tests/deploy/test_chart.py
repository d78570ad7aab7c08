"""Helm renders the chart, Kubernetes' schemas accept it, and it says what perdure needs."""

from typing import Any

import pytest

from perdure.operations.worker.options import parse_options
from tests.deploy.tools import ask_tool, needs_tools

pytestmark = needs_tools

LEAST = {"store": "s3://bucket/prefix", "temporal": {"address": "temporal:7233"}}
SCALES = {kind: {"scaling": {"enabled": True}} for kind in ("workflows", "model", "tools")}
FULL: dict[str, Any] = {
    "store": "s3://bucket",
    "temporal": {"address": "temporal:7233", "tls": True},
    "buildId": "v2",
    "secrets": {"all": ["servers"], "model": ["keys"], "tools": ["tools"]},
    "environment": {"PERDURE_MODEL": "openai/gpt-5"},
    "workers": SCALES,
    "gateway": {"url": "https://perdure.example.org", "scaling": {"enabled": True}},
    "metrics": {"podMonitor": True, "rules": True},
    "networkPolicy": {
        "toolsInternet": True,
        "webhooks": True,
        "gatewayFrom": [{"namespaceSelector": {}}],
    },
    "serviceAccount": {"annotations": {"example.org/role": "store"}},
}
CASES = {
    "least": LEAST,
    "full": FULL,
    "one": {**LEAST, "workers": {"tools": {"enabled": False}}, "gateway": {"enabled": False}},
    "no address": {"store": "s3://bucket", "temporal": {}},
    "a folder as the store": {**LEAST, "store": "file:///data"},
    "a misspelt value": {**LEAST, "worker": {}},
    "a limit without a unit": {**LEAST, "workers": {"tools": {"maxMemory": "1000"}}},
    "scaling by TLS without a key": {**FULL, "secrets": {}},
}


@pytest.fixture(scope="module")
def answers() -> dict[str, Any]:
    """Return what Helm makes of each case."""
    answers: dict[str, Any] = ask_tool("chart", given=CASES)
    return answers


def find(answers: dict[str, Any], case: str, kind: str) -> dict[str, Any]:
    """Return the manifests of a kind, by name."""
    manifests = answers[case]["manifests"]
    return {it["metadata"]["name"]: it for it in manifests if it["kind"] == kind}


@pytest.mark.parametrize(
    ("case", "word"),
    [
        ("no address", "address"),
        ("a folder as the store", "/store"),
        ("a misspelt value", "worker"),
        ("a limit without a unit", "maxMemory"),
        ("scaling by TLS without a key", "TEMPORAL_API_KEY"),
    ],
)
def test_values_that_cannot_be_right_are_refused_by_name(
    answers: dict[str, Any], case: str, word: str
) -> None:
    assert word in answers[case]["refused"]


@pytest.mark.parametrize("case", ["least", "full"])
def test_every_pod_runs_without_rights_and_writes_only_where_it_may(
    answers: dict[str, Any], case: str
) -> None:
    owners = find(answers, case, "Deployment") | find(answers, case, "Job")
    assert len(owners) == 5
    for owner in owners.values():
        pod = owner["spec"]["template"]["spec"]
        [container] = pod["containers"]
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["automountServiceAccountToken"] is False
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        assert {it["mountPath"] for it in container["volumeMounts"]} == {"/data", "/tmp"}
        assert "memory" in container["resources"]["limits"]


def test_workers_get_options_that_they_know_and_the_time_to_drain(answers: dict[str, Any]) -> None:
    deployments = find(answers, "least", "Deployment")
    for kind in ("workflows", "model", "tools"):
        pod = deployments[f"demo-perdure-{kind}"]["spec"]["template"]["spec"]
        [container] = pod["containers"]
        assert container["args"][0] == "worker"
        words = [it for it in container["args"][1:] if not it.startswith("--max-memory")]
        options = parse_options(words)
        assert options.kinds == {kind}
        assert options.grace < pod["terminationGracePeriodSeconds"]
        ports = {port["name"]: port["containerPort"] for port in container["ports"]}
        assert ports["health"] == options.health_port
        assert container["readinessProbe"]["httpGet"] == {"path": "/readyz", "port": "health"}
        assert container["livenessProbe"]["httpGet"] == {"path": "/livez", "port": "health"}


def test_the_key_of_a_model_is_given_to_workers_that_ask_models_alone(
    answers: dict[str, Any],
) -> None:
    secrets = {}
    for name, deployment in find(answers, "full", "Deployment").items():
        [container] = deployment["spec"]["template"]["spec"]["containers"]
        sources = [it["secretRef"]["name"] for it in container["envFrom"] if "secretRef" in it]
        secrets[name.removeprefix("demo-perdure-")] = sources
    assert secrets == {
        "workflows": ["servers"],
        "model": ["servers", "keys"],
        "tools": ["servers", "tools"],
        "gateway": ["servers"],
    }


def test_scaling_looks_at_the_queue_of_each_kind(answers: dict[str, Any]) -> None:
    queues = {}
    for name, scaled in find(answers, "full", "ScaledObject").items():
        [trigger] = scaled["spec"]["triggers"]
        assert scaled["spec"]["scaleTargetRef"]["name"] == name
        assert trigger["type"] == "temporal"
        queues[name] = (trigger["metadata"]["taskQueue"], trigger["metadata"]["queueTypes"])
        assert "replicas" not in find(answers, "full", "Deployment")[name]["spec"]
    assert queues == {
        "demo-perdure-workflows": ("perdure", "workflow,activity"),
        "demo-perdure-model": ("perdure-llm", "activity"),
        "demo-perdure-tools": ("perdure-tools", "activity"),
    }


@pytest.mark.parametrize("kind", ["PodDisruptionBudget", "NetworkPolicy"])
def test_what_selects_pods_selects_those_of_one_deployment(
    answers: dict[str, Any], kind: str
) -> None:
    labels = {
        name: owner["spec"]["template"]["metadata"]["labels"]
        for name, owner in find(answers, "full", "Deployment").items()
    }
    selecting = find(answers, "full", kind)
    assert labels.keys() <= selecting.keys()
    for name in labels:
        spec = selecting[name]["spec"]
        selector = spec.get("selector") or spec["podSelector"]
        wanted = selector["matchLabels"].items()
        assert [it for it, owned in labels.items() if wanted <= owned.items()] == [name]


def test_tools_reach_nothing_inside_but_the_servers(answers: dict[str, Any]) -> None:
    [*rules, internet] = find(answers, "full", "NetworkPolicy")["demo-perdure-tools"]["spec"][
        "egress"
    ]
    block = internet["to"][0]["ipBlock"]
    assert {"10.0.0.0/8", "169.254.0.0/16"} <= set(block["except"])
    servers = rules[1]
    assert [it["port"] for it in servers["ports"]] == [7233, 443]
    assert servers["to"] == [{"ipBlock": {"cidr": "10.0.0.0/8"}}]
    closed = find(answers, "least", "NetworkPolicy")["demo-perdure-tools"]["spec"]["egress"]
    assert len(closed) == len(rules)


def test_webhooks_are_posted_by_workers_for_workflows_and_to_nothing_inside(
    answers: dict[str, Any],
) -> None:
    rules = find(answers, "full", "NetworkPolicy")["demo-perdure-workflows"]["spec"]["egress"]
    assert rules[-1]["ports"] == [{"port": 443, "protocol": "TCP"}]
    assert "10.0.0.0/8" in rules[-1]["to"][0]["ipBlock"]["except"]
    closed = find(answers, "least", "NetworkPolicy")["demo-perdure-workflows"]["spec"]["egress"]
    assert len(closed) == len(rules) - 1


def test_a_kind_that_is_switched_off_leaves_nothing(answers: dict[str, Any]) -> None:
    assert find(answers, "one", "Deployment").keys() == {
        "demo-perdure-model",
        "demo-perdure-workflows",
    }
    assert not find(answers, "one", "Service")
    assert "no worker for tools" in answers["one"]["notes"]
    assert "WARNING" not in answers["least"]["notes"]


def test_the_alerts_are_in_the_chart(answers: dict[str, Any]) -> None:
    [rule] = find(answers, "full", "PrometheusRule").values()
    assert rule["spec"]["groups"][0]["rules"][0]["alert"] == "PerdureNoWorkflowWorker"
