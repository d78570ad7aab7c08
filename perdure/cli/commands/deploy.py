"""`perdure deploy`: route conversations to a version of the workers' code."""

from dataclasses import asdict

from perdure.cli.environment import find_environment
from perdure.cli.options import Format
from perdure.cli.output import note, show, show_list
from perdure.errors import Invalid
from perdure.operations.deploy import WorkerVersion, list_versions
from perdure.operations.deploy import deploy as make_current
from perdure.temporal.connect import connect


async def execute(build_id: str | None, ramp: float | None, output: Format) -> None:
    if build_id is None and ramp is not None:
        raise Invalid("Say which version --ramp is about.", "`perdure deploy` lists them.")
    queue = (await find_environment()).settings.task_queue
    temporal = await connect()
    if build_id is not None:
        await make_current(temporal, queue, build_id, ramp)
    listed = await list_versions(temporal, queue)
    show_list(listed, asdict, _show, output)
    if not listed:
        note(f"No worker on the queue {queue!r} was ever started with a PERDURE_BUILD_ID.")


def _show(version: WorkerVersion) -> None:
    status = version.status if version.percent is None else f"{version.status} {version.percent:g}%"
    show(f"{version.build_id:<20}  {status:<12}  {', '.join(version.workers) or 'no worker'}")
