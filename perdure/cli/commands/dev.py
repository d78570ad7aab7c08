"""`perdure dev`: run an embedded stack on this machine."""

from pathlib import Path

from perdure.cli.environment import Environment, start_stack
from perdure.cli.options import Format
from perdure.cli.output import note, show, show_json
from perdure.embedded.record import StackInfo
from perdure.operations.error_reports import EXIT_OK
from perdure.operations.worker_process import choose_configured_sandbox, stop_signal
from perdure.settings.settings import Settings, load_settings


async def execute(data: Path | None, output: Format) -> int:
    settings = load_settings(data=data)
    stop = stop_signal()
    note("Starting Temporal, an S3 store and a worker ...")
    async with start_stack(settings) as stack:
        _announce(stack.info, settings, output)
        await Environment(settings, own_stack=stack).run_with_stack(stop.wait())
        note("\nEnding ...")
    note(f"Ended. Everything is kept in {settings.data}.")
    return EXIT_OK


def _announce(info: StackInfo, settings: Settings, output: Format) -> None:
    if output is not Format.text:
        show_json(info.model_dump(mode="json", exclude={"environment"}), output)
        return
    show(f"Temporal UI   {info.ui}")
    if info.codec:
        show(f"codec         {info.codec}")
    show(f"Temporal      {info.temporal}")
    show(f"S3 endpoint   {info.store}")
    show(f"bucket        {info.bucket}")
    show(f"worker        pid {info.pids['worker']}")
    show(f"data          {info.folder}")
    show(f"sandbox       {choose_configured_sandbox(settings).description}")
    note('\nIn another terminal: `perdure run "TASK"`, `perdure ls`. ^C ends all of it.')
