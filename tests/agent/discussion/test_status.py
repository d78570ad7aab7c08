"""What the Temporal UI shows of a discussion."""

from perdure.agent.discussion.spec import DiscussionKey, Phase, outline, parse_discussion
from perdure.agent.discussion.state import DiscussionState
from perdure.agent.discussion.status import describe_status, status_of
from perdure.agent.discussion.tally import Tally

KEY = DiscussionKey(user_id="anna", session_id="tea")


def test_the_details_name_phase_speakers_vote_cost_and_log() -> None:
    spec = parse_discussion({"topic": "t", "agents": [{"id": "ada", "model": "m"}]})
    state = DiscussionState(
        outline=outline(spec),
        end=12,
        round=2,
        speeches={"ada": 3},
        costs={"ada": 0.5},
        tokens={"ada": 1200},
        tally=Tally(phase="discussion", counts={"yes": 2, "no": 1}, winner="yes"),
        summary="They\nagree.",
    )
    text = describe_status(status_of(KEY, state, ("ada",)), Phase(name="discussion", rounds=3))
    assert text.splitlines() == [
        "- status: **running**",
        "- phase: discussion, round 2 of 3",
        "- speaking: ada",
        "- speeches: ada 3",
        "- events: 12",
        "- vote: yes 2, no 1; winner: yes",
        "- summary: They agree.",
        "- tokens: 1,200",
        "- cost: $0.5000",
        "- log: users/anna/discussions/tea/",
    ]


def test_before_it_is_opened_there_is_only_its_log() -> None:
    status = status_of(KEY, None)
    assert (status.status, status.log) == ("opening", "users/anna/discussions/tea/")
