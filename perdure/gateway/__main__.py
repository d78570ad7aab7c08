"""The process of a gateway, as `perdure gateway` and `perdure dev` start it."""

import argparse
import asyncio
import sys
from contextlib import suppress

from perdure.gateway.serve import serve
from perdure.operations.error_reports import EXIT_OK, EXPECTED_ERRORS, report_error
from perdure.operations.process import configure_logs
from perdure.operations.process_exit import exit_process
from perdure.operations.worker.options import DEFAULT_GRACE
from perdure.operations.worker.process import find_loop_factory
from perdure.settings.settings import load_settings


def raise_file_limit() -> None:
    """Allow as many open files as this process may have: each connection is one."""
    with suppress(ImportError, ValueError, OSError):  # not on Windows
        import resource

        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def main() -> None:
    parser = argparse.ArgumentParser(prog="perdure gateway")
    parser.add_argument("--host", required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--grace", type=float, default=DEFAULT_GRACE)
    options = parser.parse_args()
    raise_file_limit()
    try:
        settings = load_settings()
        configure_logs("perdure.gateway", settings.log_format)
        with asyncio.Runner(loop_factory=find_loop_factory()) as runner:
            runner.run(serve(settings, options.host, options.port, options.grace))
    except EXPECTED_ERRORS as error:
        failure = report_error(error)
        print(f"perdure gateway: {failure.message} {failure.hint}".rstrip(), file=sys.stderr)
        exit_process(failure.exit_code)
    exit_process(EXIT_OK)


if __name__ == "__main__":
    main()
