"""No step lets a secret out, whichever way its words take."""

from pathlib import Path
from typing import Any

import pytest
from temporalio.testing import ActivityEnvironment

from perdure.activities.ask import AskActivities
from perdure.activities.batch.paging import BatchActivities
from perdure.activities.batch.samples import SampleActivities
from perdure.activities.support.resources import Resources
from perdure.activities.tool import ToolActivities
from perdure.agent.calls.completion import Completion
from perdure.agent.loop.ask import Ask
from perdure.agent.loop.attempt import Attempt
from perdure.agent.loop.steps import Act, SetUp, Task
from perdure.client.ids import new_conversation_id
from perdure.evaluation.messages import LostAttempt
from perdure.evaluation.sample import build_sample
from perdure.events.entry import Origin
from perdure.events.event import AnyEvent
from perdure.models.model import OnText, Request
from perdure.secrets.masking import MaskedLog
from perdure.secrets.registry import Secrets
from perdure.storage.batches import BatchFolder
from perdure.storage.files import FileStore
from perdure.storage.log.event_log import EventLog
from tests.builders import (
    SPEC,
    action,
    completion,
    observation,
    opened_event,
    prompt,
    spec_event,
    user,
)
from tests.secret_leaks import CANARIES, COPY, VALUES, find_leaks
from tests.storage.memory import MemoryStore

ENVIRONMENT = {f"PERDURE_SECRET_{name}": value for name, value in CANARIES.items()}

AGENT = SPEC.model_copy(update={"tools": ("tests.secret_leaks:TOOLS",)})


class Repeating:
    """A model that repeats every secret."""

    def __init__(self) -> None:
        self.requests: list[Request] = []

    async def complete(self, request: Request, on_text: OnText) -> Completion:
        self.requests.append(request)
        on_text("\n".join(VALUES))
        return completion(words="\n".join(VALUES))


class Scene:
    """A conversation of a worker that has secrets."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.model = Repeating()
        self.resources = Resources(
            FileStore(folder / "store"),
            self.model,
            folder / "workspaces",
            secrets=Secrets(environment=ENVIRONMENT),
        )
        self.log = EventLog(self.resources.store, "local", new_conversation_id())

    async def write(self, *events: AnyEvent, activity: str = "1") -> None:
        """Append events as another step of the same run."""
        run = ActivityEnvironment().info.workflow_run_id
        assert run is not None
        origin = Origin(run=run, activity=activity)
        await self.log.append(events, base=await self.log.end(), origin=origin)

    async def run(self, work: Any, step: Any, base: int) -> str:
        task: Task[Any] = Task(
            conversation_id=self.log.conversation_id, user_id="local", base=base, step=step
        )
        result = str(await ActivityEnvironment().run(work, task))
        assert find_leaks(result.encode()) == set()
        return result

    async def store_sample(self, **fields: Any) -> Attempt:
        """Store a batch of one sample; return the attempt at it."""
        sample = build_sample({"id": "one", "input": "Go.", **fields})
        batch = BatchFolder(self.resources.store, "local", "b")
        samples, _, _ = await batch.write_samples([sample])
        return Attempt(
            batch="b", sample="one", sample_set=samples, chunk=0, line=0, needs_setup=True
        )

    def workspace(self) -> Path:
        return self.resources.workspace(SPEC, self.log)

    def stored(self) -> bytes:
        """Return all that is in the store, in which there is no secret."""
        files = (path for path in (self.folder / "store").rglob("*") if path.is_file())
        body = b"\n".join(path.read_bytes() for path in files)
        assert find_leaks(body) == set()
        return body


@pytest.fixture
async def scene(tmp_path: Path) -> Scene:
    scene = Scene(tmp_path)
    await scene.write(opened_event(), spec_event(AGENT), prompt())
    return scene


@pytest.mark.parametrize("late", [False, True])
async def test_a_result_of_a_tool_is_masked_even_where_it_comes_late(
    scene: Scene, late: bool
) -> None:
    await scene.write(action("raise_them"))
    (scene.workspace() / COPY).write_text("\n".join(VALUES))
    if late:
        call = await scene.log.get(3)
        await scene.write(observation(call.event.id), activity="another")
    step = Act(action_seq=3, spec_seq=1, prompt_seq=2, repeatable=True)
    await scene.run(ToolActivities(scene.resources).call, step, 3 + 1)
    assert b"cannot log in with <secret:" in scene.stored()


async def test_a_question_and_its_answer_are_masked(scene: Scene) -> None:
    answer = await scene.run(AskActivities(scene.resources).ask, Ask(question=VALUES[1]), 3)
    assert "<secret:CANARY_01>" in answer
    [request] = scene.model.requests
    assert find_leaks(str(request.messages).encode()) == set()


@pytest.mark.parametrize(("code", "size"), [(0, 4000), (1, 2000)])
async def test_the_output_of_a_setup_is_masked_before_it_is_cut(
    scene: Scene, code: int, size: int
) -> None:
    """The kept end would begin in the middle of the secret."""
    dots = f"head -c {size - 12} /dev/zero | tr '\\0' ."
    attempt = await scene.store_sample(setup=f"printf %s {VALUES[1]}; {dots}; exit {code}")
    work = SampleActivities(scene.resources).set_up
    await scene.run(work, SetUp(attempt=attempt, spec_seq=1), 3)
    body = (await scene.log.get(3)).body
    assert b"CANARY_01>..." in body
    assert VALUES[1][-12:].encode() not in body


async def test_the_failure_of_a_lost_attempt_is_masked(scene: Scene) -> None:
    lost = LostAttempt(
        user_id="local", attempt=await scene.store_sample(), detail=f"It ended: {VALUES[1]}"
    )
    temporal: Any = None
    work = BatchActivities(scene.resources, temporal).record_lost_attempt
    summary = await ActivityEnvironment().run(work, lost)
    assert summary.detail == "It ended: <secret:CANARY_01>"
    assert b"It ended: <secret:CANARY_01>" in scene.stored()


async def test_a_secret_that_becomes_known_later_is_masked_from_then_on(tmp_path: Path) -> None:
    """A worker without any secret has nothing to search for, until there is one."""
    secrets = Secrets(tmp_path, {})
    store = MemoryStore()
    log = MaskedLog(store, "local", new_conversation_id(), None, secrets)
    origin = Origin(run="run", activity="1")
    await log.append([user("it is sesame-opens")], base=0, origin=origin)
    await log.record_response(0, completion(words="sesame-opens"), origin)
    (tmp_path / "DOOR").write_text("sesame-opens")
    assert secrets.value("DOOR") == "sesame-opens"
    later = Origin(run="run", activity="2")
    await log.append([user("it is sesame-opens")], base=1, origin=later)
    await log.record_response(1, completion(words="sesame-opens"), later)
    bodies = [body for body in store.objects.values() if b"sesame-opens" in body]
    assert len(bodies) == 2
    assert sum(b"<secret:DOOR>" in body for body in store.objects.values()) == 2
