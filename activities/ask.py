"""The activity that asks the agent a question beside its task."""

from temporalio import activity

from perdure.activities.support.load import load_spec
from perdure.activities.support.prompt_images import load_prompt
from perdure.activities.support.resources import Activities
from perdure.activities.support.step import final_failure, non_retryable
from perdure.activities.support.transcript_cache import TranscriptCache
from perdure.agent.loop.ask import QUESTION_PROMPT, Ask, AskResponse
from perdure.agent.loop.steps import Task
from perdure.events.content import join_text
from perdure.models.model import ContextOverflow, ModelRefused, Request
from perdure.storage.log.event_log import EventLog
from perdure.storage.log.state import read_state_at

EMPTY_ANSWER = "The model answered with tool calls and no words: put the question another way."


class AskActivities(Activities):
    @activity.defn(name="llm.ask")
    async def ask(self, task: Task[Ask]) -> AskResponse:
        """Send the model the conversation as it would see it next, followed by the question.

        Nothing is written. The tools are sent, as some providers want those that were called, but
        calls in the answer are not made.
        """
        async with self.begin(task) as (log, progress):
            try:
                request = await self._request(log, task)
                answer = await self.resources.model.complete(request, progress.report)
            except (ModelRefused, ContextOverflow) as error:
                raise non_retryable(error) from error
            text = join_text(answer.message.content)
            if not text.strip():
                raise final_failure("NoWords", EMPTY_ANSWER)
            # Neither question nor answer are in the log, which masks what it records.
            masked = self.resources.secrets_of(log.user_id).mask(text)
            return AskResponse(text=masked, usage=answer.usage)

    async def _request(self, log: EventLog, task: Task[Ask]) -> Request:
        state = await read_state_at(log, task.base)
        if state.spec is None:
            reason = f"The conversation {log.conversation_id} has no agent yet: ask again later."
            raise final_failure("NoAgent", reason)
        spec = await load_spec(log, state.spec_seq)
        self.resources.queues.admit_question(spec.model.name)
        # Not the worker's cache: the conversation's own step may extend its transcript right now.
        limit = spec.model.max_message_chars
        transcript = await TranscriptCache(0).load(
            log, task.base, state.forgotten_seqs, spec.condenser, limit
        )
        masked_question = self.resources.secrets_of(log.user_id).mask(task.step.question)
        question = {"role": "user", "content": QUESTION_PROMPT.format(question=masked_question)}
        return Request(
            spec.model,
            [*await load_prompt(log, transcript), question],
            transcript.tools,
            fallbacks=spec.fallbacks,
            purpose="ask",
            metadata=spec.metadata,
        )
