"""`perdure doctor`: check the environment."""

from rich.text import Text

from perdure.cli.doctor_checks import CheckResult, run_checks
from perdure.cli.options import Format
from perdure.cli.output import show, show_list


async def execute(output: Format) -> int:
    results = await run_checks()
    show_list(results, CheckResult.fields, _show, output)
    return max(result.exit_code for result in results)


def _show(result: CheckResult) -> None:
    verdict = Text("ok    ", "green") if result.ok else Text("failed", "red")
    show(verdict.append(f"  {result.check:<10} {result.message}", "default"))
    if result.hint:
        show(f"        {'':<10} {result.hint}")
