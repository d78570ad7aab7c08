"""The floor: a bare workflow with two activities a step that do nothing."""

from datetime import timedelta

from temporalio import activity, workflow


@activity.defn(name="floor.nothing")
async def nothing() -> None:
    return None


@workflow.defn(name="Floor")
class Floor:
    @workflow.run
    async def run(self, steps: int) -> None:
        for _ in range(2 * steps):
            await workflow.execute_activity(
                "floor.nothing", start_to_close_timeout=timedelta(seconds=30)
            )
