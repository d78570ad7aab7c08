"""A process that exports nothing loads nothing for it."""

import subprocess
import sys

import pytest

from perdure.telemetry.options import TelemetryOptions, read_options

CODE = """
import sys
import perdure.worker
from perdure.telemetry.start import start_configured_telemetry

assert start_configured_telemetry(None) is None
print(*sys.modules)
"""


@pytest.mark.long
def test_a_worker_without_telemetry_loads_none_of_it() -> None:
    environment = {"PATH": "/usr/bin:/bin"}
    done = subprocess.run(
        [sys.executable, "-c", CODE], capture_output=True, text=True, check=True, env=environment
    )
    loaded = set(done.stdout.split())
    assert not {name for name in loaded if name.partition(".")[0] == "opentelemetry"}
    ours = {name for name in loaded if name.startswith("perdure.telemetry.")}
    assert ours == {"perdure.telemetry.current", "perdure.telemetry.start"}


def test_nothing_is_exported_unless_a_variable_or_the_setting_asks_for_it() -> None:
    assert read_options(environment={}).is_off()
    endpoint = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4318/"}
    assert read_options(environment=endpoint | {"OTEL_SDK_DISABLED": "true"}).is_off()
    none = {"OTEL_TRACES_EXPORTER": "none", "OTEL_METRICS_EXPORTER": "none"}
    assert read_options(environment=endpoint | none).is_off()
    assert read_options(environment={"OTEL_SERVICE_NAME": "agents"}).is_off()


def test_what_is_asked_for_is_read_as_opentelemetry_says() -> None:
    endpoint = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4318/"}
    both = read_options(environment=endpoint)
    assert both.traces
    assert not both.content
    assert both.otlp_metrics is not None
    assert both.otlp_metrics.url == "http://collector:4318/v1/metrics"
    only = read_options(
        environment={
            "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": "http://metrics/in",
            "OTEL_EXPORTER_OTLP_HEADERS": "Api-Key=a%20b,x=1",
            "OTEL_METRIC_EXPORT_INTERVAL": "5000",
        }
    )
    assert not only.traces
    assert only.otlp_metrics is not None
    assert only.otlp_metrics.url == "http://metrics/in"
    assert only.otlp_metrics.headers == {"api-key": "a b", "x": "1"}
    assert only.otlp_metrics.interval == 5
    asked = read_options("127.0.0.1:9464", environment=endpoint)
    assert asked.traces
    assert asked.otlp_metrics is None, "Prometheus comes for them"
    assert read_options(environment={"OTEL_TRACES_EXPORTER": "otlp"}).traces
    assert read_options("x:1", environment={}) == TelemetryOptions(prometheus="x:1")


MISSING = """
import os, sys
sys.modules["opentelemetry.exporter"] = None
os.environ["OTEL_TRACES_EXPORTER"] = "otlp"
from perdure.telemetry.start import start_configured_telemetry
assert start_configured_telemetry(None).sender is None
"""


@pytest.mark.long
def test_without_its_library_traces_are_missing_and_the_log_says_what_to_install() -> None:
    done = subprocess.run([sys.executable, "-c", MISSING], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    sentence = (
        "No traces are sent: OTEL_* ask for them, and that needs `pip install 'perdure[otel]'`."
    )
    assert done.stderr == f"{sentence}\n"


FROZEN = """
import gc, os
os.environ["OTEL_TRACES_EXPORTER"] = "otlp"
from perdure.telemetry.start import start_configured_telemetry
telemetry = start_configured_telemetry(None)
import opentelemetry.sdk.trace
known = {id(it) for it in gc.get_objects()}
assert telemetry.sender is not None
assert id(vars(opentelemetry.sdk.trace)) not in known
telemetry.close()
"""


@pytest.mark.long
def test_the_libraries_of_telemetry_are_no_matter_of_garbage_collection() -> None:
    done = subprocess.run([sys.executable, "-c", FROZEN], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
