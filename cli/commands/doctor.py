"""`perdure doctor`: what works, what does not, and how to mend it."""

from rich.text import Text

from cli.checks import Finding, examine
from cli.output import Format, Output, show, show_json
from cli.performing import command_app, perform

app = command_app()


@app.command()
def doctor(output: Output = Format.text) -> None:
    """Check Temporal, the store, the model's key and the disk, and say how to mend them.

    The exit code is that of the worst finding: 2 configuration, 6 unreachable.
    """
    perform(_doctor(output), output)


async def _doctor(output: Format) -> int:
    findings = await examine()
    if output is Format.json:
        show_json([one.fields() for one in findings], output)
    for one in findings:
        if output is Format.jsonl:
            show_json(one.fields(), output)
        elif output is Format.text:
            _show(one)
    return max(one.exit_code for one in findings)


def _show(found: Finding) -> None:
    verdict = Text("ok    ", "green") if found.ok else Text("failed", "red")
    show(verdict.append(f"  {found.check:<10} {found.told}", "default"))
    if found.hint:
        show(f"        {'':<10} {found.hint}")
