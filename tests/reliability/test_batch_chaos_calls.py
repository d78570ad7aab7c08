"""Tests of the audit of model calls: no unexplained loss passes."""

import math

from reliability.batch_chaos.calls import audit_calls
from reliability.batch_chaos.model import Call, RequestId
from reliability.batch_chaos.worker_pool import Disruption

FIRST = RequestId(7, "", 0)


def call(began: float, answered: float | None, worker: str = "worker-1") -> Call:
    return Call(FIRST, worker, began, lambda _: None, id=f"at {began}", answered=answered)


def killed(at: float, worker: str = "worker-1") -> Disruption:
    return Disruption("killed", worker, at, math.inf)


def test_an_answer_that_is_on_record_costs_once() -> None:
    audit = audit_calls([call(1.0, 2.0)], [], ["at 1.0"], {FIRST: 1})
    assert (audit.answered, audit.recorded) == (1, 1)
    assert (audit.repeated, audit.cut, audit.unknown_records, audit.unexpected) == ((), (), (), ())


def test_a_kill_before_the_record_explains_a_second_answer() -> None:
    calls = [call(1.0, 2.0), call(5.0, 6.0, "worker-2")]
    audit = audit_calls(calls, [killed(2.1)], ["at 5.0"], {FIRST: 1})
    [lost] = audit.repeated
    assert lost.disruption == killed(2.1)
    assert round(lost.after, 6) == 0.1
    assert not audit.unexplained


def test_a_kill_after_the_second_request_explains_nothing() -> None:
    calls = [call(1.0, 2.0), call(5.0, 6.0, "worker-2")]
    audit = audit_calls(calls, [killed(5.1)], ["at 5.0"], {FIRST: 1})
    assert [item.call.id for item in audit.unexplained] == ["at 1.0"]


def test_the_kill_of_another_worker_explains_nothing() -> None:
    calls = [call(1.0, 2.0), call(5.0, 6.0, "worker-2")]
    audit = audit_calls(calls, [killed(2.1, "worker-2")], ["at 5.0"], {FIRST: 1})
    assert len(audit.unexplained) == 1


def test_a_worker_that_thawed_before_the_call_explains_nothing() -> None:
    calls = [call(1.0, 2.0), call(5.0, 6.0, "worker-2")]
    frozen = Disruption("frozen", "worker-1", 0.1, 0.9)
    assert audit_calls(calls, [frozen], ["at 5.0"], {FIRST: 1}).unexplained
    frozen = Disruption("frozen", "worker-1", 0.1, 1.1)
    assert not audit_calls(calls, [frozen], ["at 5.0"], {FIRST: 1}).unexplained


def test_a_call_that_was_hung_up_on_has_to_be_explained_too() -> None:
    calls = [call(1.0, None), call(5.0, 6.0, "worker-2")]
    assert len(audit_calls(calls, [], ["at 5.0"], {FIRST: 1}).unexplained) == 1
    audit = audit_calls(calls, [killed(1.5)], ["at 5.0"], {FIRST: 1})
    assert (len(audit.cut), len(audit.unexplained), audit.answered) == (1, 0, 1)


def test_a_late_call_beside_the_one_on_record_has_to_be_of_a_worker_that_was_given_up() -> None:
    calls = [call(1.0, 2.0, "worker-2"), call(1.5, None)]
    assert len(audit_calls(calls, [], ["at 1.0"], {FIRST: 1}).unexplained) == 1
    assert audit_calls(calls, [killed(1.9)], ["at 1.0"], {FIRST: 1}).unexplained
    silent = Disruption("silent", "worker-1", 1.5, 1.5)
    assert not audit_calls(calls, [silent], ["at 1.0"], {FIRST: 1}).unexplained


def test_an_answer_without_a_record_or_a_retry_is_lost() -> None:
    audit = audit_calls([call(1.0, 2.0)], [killed(2.1)], [], {FIRST: 1})
    assert audit.unexplained
    assert audit.unexpected


def test_records_and_answers_have_to_agree() -> None:
    audit = audit_calls([call(1.0, 2.0), call(3.0, 4.0)], [], ["at 1.0", "at 3.0", "?"], {FIRST: 1})
    assert audit.unknown_records == ("?",)
    assert len(audit.unexpected) == 1


def test_a_repeat_under_its_key_is_charged_once_and_another_key_is_seen() -> None:
    first, again = call(1.0, 2.0), call(5.0, 6.0, "worker-2")
    first.key = again.key = "one"
    audit = audit_calls([first, again], [killed(2.1)], ["at 5.0"], {FIRST: 1})
    assert (audit.answered, audit.charged, audit.unexpected) == (2, 1, ())
    again.key = "two"
    audit = audit_calls([first, again], [killed(2.1)], ["at 5.0"], {FIRST: 1})
    assert audit.charged == 2
    assert "more than one key" in audit.unexpected[0]
