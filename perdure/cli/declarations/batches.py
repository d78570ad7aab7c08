"""The `perdure batch` commands."""

from pathlib import Path
from typing import Any, Literal

import typer

from perdure.cli.declarations.agent_fields import AgentFieldOptions
from perdure.cli.options import (
    Detach,
    ExportOptions,
    Format,
    Options,
    OutputOptions,
    argument,
    as_ids,
    completer,
    flag,
    option,
)
from perdure.cli.runner import command, new_named_group

app = new_named_group("Run agents over datasets, score them, and report and compare the results.")


def batch_argument(
    metavar: str, help: str = "The batch's name or its unique beginning.", own: bool = False
) -> Any:
    declared = argument(metavar, help, autocompletion=completer("complete_batches"))
    return as_ids(declared, "own batch" if own else "batch")


class BatchOutputOptions(OutputOptions):
    """The options of a command that prints the progress of batches."""

    through_gateway = "works"

    output: Format = option(
        "The format of the results: text, json or jsonl.",
        "-o",
        "--output",
        "--format",
        default=Format.text,
        metavar="FORMAT",
    )


class BatchOptions(BatchOutputOptions):
    """The options of a command that changes one batch."""

    name: str = batch_argument("NAME")


@command(app, "batch.start:run")
class Run(AgentFieldOptions, BatchOutputOptions):
    """Run a batch to its end and show its progress; repeated, it runs only missing samples.

    FILE is a .toml or .py file, or module:attribute. Its scorers and tools are imported from its
    folder. A worker on other servers than those of `perdure dev` needs the folder as PERDURE_CODE.
    It uses the same servers as `perdure run`. ^C leaves the batch, which continues; the same
    command shows it again. The exit code is 0 if every sample has a score, and 1 if a sample failed
    or is missing.
    """

    file: str = argument("FILE", "A .toml or .py file, or module:attribute.")
    models: list[str] | None = option(
        "The agent's model; may be repeated, for a batch each.", "--model", metavar="NAME"
    )
    concurrency: int | None = option(
        "The number of samples that run at the same time.", min=1, metavar="N"
    )
    limit: int | None = option("Run only the first N samples.", min=1, metavar="N")
    ids: list[str] | None = option(
        "Run only this sample; may be repeated.", "--sample-id", "--id", metavar="ID"
    )
    epochs: int | None = option("How often each sample is run.", min=1, metavar="N")
    arguments: list[str] | None = option(
        "An argument of the function of the batch or of its dataset; may be repeated.",
        *("-T", "--task-arg"),
        metavar="KEY=VALUE",
    )
    model_fields: list[str] | None = option(
        "A field of the model, such as api_base; may be repeated.",
        *("-M", "--model-arg"),
        metavar="KEY=VALUE",
    )
    name: str | None = option("The name of the batch, in place of the file's.")
    retry_failed: bool = flag("Also repeat failed samples.", "--retry-failed")
    rescore: bool = flag("Score the existing results again, and run no agent.", "--rescore")
    detach: Detach = False

    @property
    def mode(self) -> Literal["missing", "failed", "rescore"]:
        """Select what is run. Raises typer.BadParameter for flags that contradict each other."""
        if not self.rescore:
            return "failed" if self.retry_failed else "missing"
        if self.retry_failed:
            raise typer.BadParameter(
                "--rescore runs nothing, so it does not go with --retry-failed."
            )
        return "rescore"


@command(app, "batch.control:status")
class Status(BatchOutputOptions):
    """Print the progress of a batch, or of all batches.

    The workflow reports it if it runs, else the results in the store.
    """

    name: str | None = batch_argument("[NAME]", "The batch's name; by default, all batches.")
    shared: bool = flag("List the batches that others share with you.", "--shared")


@command(app, "commands.watch_sample:watch")
class Watch(BatchOptions):
    """Show the progress of a batch until it ends, or the conversation of one sample.

    It shows the newest attempt at the sample, with all its turns, until that has a result. ^C stops
    only the display.
    """

    sample: str | None = argument("[SAMPLE]", "The id of a sample; by default, the batch itself.")
    epoch: int = option("The epoch, counted from 0.", default=0, min=0, metavar="N")


@command(app, "batch.control:pause")
class Pause(BatchOptions):
    """Pause a batch, and the conversations that it runs.

    Each conversation pauses after its current step.
    """


@command(app, "batch.control:resume")
class Resume(BatchOptions):
    """Resume a batch after a pause.

    `perdure batch retune` continues a batch that paused at a limit, and `perdure batch retry` one
    that has ended.
    """


@command(app, "batch.control:retune")
class Retune(BatchOptions):
    """Change the concurrency or the limits of a batch while it runs.

    A batch that paused at a limit continues when the limit is raised.
    """

    concurrency: int | None = option(
        "The number of samples that run at the same time.", metavar="N", min=1, max=10_000
    )
    cost: float | None = option("The maximum of US dollars for the whole batch.", metavar="$")
    tokens: int | None = option(
        "The maximum of tokens of prompts and responses, for the whole batch.", metavar="N", min=1
    )
    time: float | None = option("The maximum of seconds for which the batch runs.", metavar="S")


@command(app, "commands.sharing:share_batch")
class Share(BatchOptions):
    """Let another user read a batch, or steer it with --write; without USER, list who may.

    That user names the batch as YOU/NAME, where YOU is your own name, and reads the conversations
    of its samples too. Only its user can share it, or run it again.
    """

    name: str = batch_argument("NAME", own=True)
    user: str | None = argument("[USER]", "The user who may read it.")
    write: bool = flag("Let the user also pause, resume and retune it.", "--write")
    revoke: str | None = option("Take back what this user may do.", "--revoke", metavar="USER")


@command(app, "batch.start:retry")
class Retry(BatchOptions):
    """Repeat failed samples, and run missing ones.

    The batch runs with its stored spec: it needs no file, only the scorers and tools, which are
    also searched in the current folder. The exit code is that of `perdure batch run`.
    """

    name: str = batch_argument("NAME", own=True)
    detach: Detach = False


@command(app, "batch.start:rescore")
class Rescore(BatchOptions):
    """Score a batch again from its logs, without running an agent.

    A scorer that reads the workspace needs the files that the agent left there. The exit code is
    that of `perdure batch run`.
    """

    name: str = batch_argument("NAME", own=True)
    file: str | None = argument(
        "[FILE]", "A spec with other scorers or targets; by default, the stored one."
    )
    detach: Detach = False


@command(app, "batch.results:results")
class Results(Options):
    """Print the results of a batch: scores, errors and cost, or a table with a row per attempt.

    It needs only the store. In a table, epochs and attempts count from 0. Texts are not changed: a
    spreadsheet takes a text that begins with = for a formula. The exit code is 1 if a sample failed
    or has no result yet.
    """

    through_gateway = "works"

    name: str = batch_argument("NAME")
    format: Literal["text", "json", "csv", "parquet"] = option(
        "text or json for a summary, csv or parquet for a table.",
        "--format",
        default="text",
        metavar="FORMAT",
    )
    path: str = option("The file to write; - is stdout.", "--output", default="-", metavar="PATH")
    failed: bool = flag("List only the failed attempts.", "--failed")


@command(app, "batch.report:compare")
class Compare(Options):
    """Report whether batches differ by more than noise, and which samples changed.

    It needs only the store. Samples are paired by their ids. The exit code is 0 whatever the
    verdict.
    """

    through_gateway = "works"

    names: list[str] = batch_argument("A B...", "Two or more batches; each is compared with A.")
    scorer: str | None = option("The scorer; by default, the first of A.", metavar="NAME")
    metric: str | None = option("The metric, if the scorer has several.", metavar="NAME")
    reducer: str | None = option(
        "The way to make one score of the epochs; by default, that of A.", metavar="NAME"
    )
    every: bool = flag("List all samples that changed.", "--all")
    page: str | None = option("Also write an HTML page.", "--output", metavar="FILE.html")
    format: Literal["text", "json"] = option(
        "The format of the result: text or json.", "--format", default="text", metavar="FORMAT"
    )


@command(app, "batch.report:report")
class Report(Options):
    """Write an HTML page about a batch: scores, plots, failures, cost and samples.

    It needs only the store: a running sample counts as missing. The page is one file that loads
    nothing from other hosts. It shows at most 2,000 samples, those without a full score first.
    """

    through_gateway = "works"

    name: str = batch_argument("NAME")
    path: str | None = option(
        "The file to write, NAME.html by default; - is stdout.", "--output", metavar="FILE"
    )
    ui: str | None = option(
        "The address of Temporal's UI, for links to the workflows.", "--ui", metavar="URL"
    )
    namespace: str | None = option(
        "The namespace in Temporal, for these links; by default, the configured one.",
        metavar="NAME",
    )
    conversations: Path | None = option(
        "Link to the pages that `perdure batch export NAME --format html` put there.",
        "--conversations",
        metavar="FOLDER",
    )


@command(app, "commands.export:export_batch")
class Export(ExportOptions):
    """Export all conversations of a batch, by sample and epoch.

    It needs only the store. The format inspect writes one log with all samples and their scores; a
    repeated attempt is in it as a retried error. JSON formats write a line per conversation to a
    file, or a file per conversation to a folder. If a conversation cannot be read, the command
    names it, exports the others, and exits with 1.
    """

    through_gateway = "works"

    name: str = batch_argument("NAME")
    every: bool = flag("Also export attempts that were repeated.", "--all-attempts")
