"""Nothing may be explained away."""

import math

from tests.batch_chaos.calls import bill
from tests.batch_chaos.crew import Blow
from tests.batch_chaos.model import Asked, Call

FIRST = Asked(7, "", 0)


def call(began: float, answered: float | None, worker: str = "worker-1") -> Call:
    return Call(FIRST, worker, began, lambda _: None, id=f"at {began}", answered=answered)


def killed(at: float, worker: str = "worker-1") -> Blow:
    return Blow("killed", worker, at, math.inf)


def test_an_answer_that_is_on_record_costs_once() -> None:
    found = bill([call(1.0, 2.0)], [], ["at 1.0"], {FIRST: 1})
    assert (found.answered, found.recorded) == (1, 1)
    assert (found.twice, found.cut, found.made_up, found.odd) == ((), (), (), ())


def test_a_kill_before_the_record_explains_a_second_answer() -> None:
    calls = [call(1.0, 2.0), call(5.0, 6.0, "worker-2")]
    found = bill(calls, [killed(2.1)], ["at 5.0"], {FIRST: 1})
    [lost] = found.twice
    assert lost.blow == killed(2.1)
    assert round(lost.after, 6) == 0.1
    assert not found.unexplained


def test_a_kill_after_the_second_request_explains_nothing() -> None:
    calls = [call(1.0, 2.0), call(5.0, 6.0, "worker-2")]
    found = bill(calls, [killed(5.1)], ["at 5.0"], {FIRST: 1})
    assert [one.call.id for one in found.unexplained] == ["at 1.0"]


def test_the_kill_of_another_worker_explains_nothing() -> None:
    calls = [call(1.0, 2.0), call(5.0, 6.0, "worker-2")]
    found = bill(calls, [killed(2.1, "worker-2")], ["at 5.0"], {FIRST: 1})
    assert len(found.unexplained) == 1


def test_one_that_thawed_before_it_asked_explains_nothing() -> None:
    calls = [call(1.0, 2.0), call(5.0, 6.0, "worker-2")]
    frozen = Blow("frozen", "worker-1", 0.1, 0.9)
    assert bill(calls, [frozen], ["at 5.0"], {FIRST: 1}).unexplained
    frozen = Blow("frozen", "worker-1", 0.1, 1.1)
    assert not bill(calls, [frozen], ["at 5.0"], {FIRST: 1}).unexplained


def test_a_call_that_was_hung_up_on_has_to_be_explained_too() -> None:
    calls = [call(1.0, None), call(5.0, 6.0, "worker-2")]
    assert len(bill(calls, [], ["at 5.0"], {FIRST: 1}).unexplained) == 1
    found = bill(calls, [killed(1.5)], ["at 5.0"], {FIRST: 1})
    assert (len(found.cut), len(found.unexplained), found.answered) == (1, 0, 1)


def test_a_late_call_beside_the_one_on_record_has_to_be_of_a_worker_that_was_given_up() -> None:
    calls = [call(1.0, 2.0, "worker-2"), call(1.5, None)]
    assert len(bill(calls, [], ["at 1.0"], {FIRST: 1}).unexplained) == 1
    assert bill(calls, [killed(1.9)], ["at 1.0"], {FIRST: 1}).unexplained
    silent = Blow("silent", "worker-1", 1.5, 1.5)
    assert not bill(calls, [silent], ["at 1.0"], {FIRST: 1}).unexplained


def test_an_answer_that_was_never_asked_for_again_is_lost() -> None:
    found = bill([call(1.0, 2.0)], [killed(2.1)], [], {FIRST: 1})
    assert found.unexplained
    assert found.odd


def test_records_and_answers_have_to_agree() -> None:
    found = bill([call(1.0, 2.0), call(3.0, 4.0)], [], ["at 1.0", "at 3.0", "?"], {FIRST: 1})
    assert found.made_up == ("?",)
    assert len(found.odd) == 1


def test_a_repeat_under_its_key_is_charged_once_and_another_key_is_seen() -> None:
    first, again = call(1.0, 2.0), call(5.0, 6.0, "worker-2")
    first.key = again.key = "one"
    found = bill([first, again], [killed(2.1)], ["at 5.0"], {FIRST: 1})
    assert (found.answered, found.charged, found.odd) == (2, 1, ())
    again.key = "two"
    found = bill([first, again], [killed(2.1)], ["at 5.0"], {FIRST: 1})
    assert found.charged == 2
    assert "more than one key" in found.odd[0]
