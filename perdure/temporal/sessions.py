"""What the workflows of a user's sessions and of conversations say to each other."""

from pydantic import Field

from perdure.events.base import Frozen

ASK, ADMIT, SUSPEND, LEAVE = "ask", "admit", "suspend", "leave"
"""The signals: a conversation asks and leaves, its user's sessions admit and suspend it."""

ASK_ACTIVITY = "sessions.ask"
SURVEY_ACTIVITY = "sessions.survey"

ADMISSION_QUERY = "admission"


class Admission(Frozen):
    """The admission of a conversation for one turn, once it has asked for it."""

    conversation_id: str
    admission_id: str


class AdmissionRequest(Frozen):
    """A conversation asks to work beside at most `limit` - 1 others of its user."""

    admission: Admission
    limit: int = Field(ge=1)


class AdmissionStatus(Frozen):
    """The answer of a conversation about its admission.

    `admission_id` is what it has asked for last; None while it is at rest. `active_at` is when its
    user last said something, or None where it does not answer.
    """

    admission_id: str | None = None
    active_at: str | None = None
    next_seq: int = 0


class Ask(Frozen):
    """The input of the activity that asks the sessions of a user."""

    user_id: str
    request: AdmissionRequest


class Survey(Frozen):
    """The input of the activity that finds which of the conversations still work."""

    user_id: str
    admissions: tuple[Admission, ...]


class WorkingConversation(Frozen):
    """A conversation that works, or is about to."""

    admission: Admission
    active_at: str | None = None


class SessionsStart(Frozen):
    """The input of the workflow of a user's sessions, with what an earlier run hands on."""

    user_id: str
    admissions: tuple[Admission, ...] = ()
    requests: tuple[AdmissionRequest, ...] = ()
