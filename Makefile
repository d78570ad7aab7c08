# Two commands do everything on a fresh machine: `make run` and `make test`.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/ready

# The tests start many processes: what is compiled once need not be compiled again.
unexport PYTHONDONTWRITEBYTECODE

# Dots on stderr, so that nothing is silent for long while the rest of the line is at work.
DOTS = trap 'kill $$dots; echo >&2' EXIT; { while sleep 2; do printf . >&2; done; } & dots=$$!;

.PHONY: run test short long longest lint format bench bench-batch bench-commands bench-gateway bench-many bench-short bfcl bfcl-short evals \
	evals-short openhands validators page page-figures screenshots local-model batch-chaos batch-chaos-short \
	simulate soak mutants following following-short attaching attaching-short sessions sessions-short fuzz-api fuzz-api-short crashes crashes-short chaos chaos-short fuzz sandbox damage damage-short wheel lock clean

run: $(READY)  ## the demo; with TASK="…" MODEL=… and a model key, a real agent
ifdef TASK
	@$(BIN)/perdure run "$(TASK)" $(if $(MODEL),--model "$(MODEL)")
else
	@echo "The demo: a scripted agent, which needs no key. It takes about half a minute." >&2
	@$(BIN)/python -m examples.demo
endif

test: $(READY)  ## everything that must be clean on every commit
	@$(MAKE) --no-print-directory -j2 --output-sync=target lint short

short: $(READY)
	$(BIN)/pytest -n 4 --dist worksteal

long: $(READY)  ## the tests that take their time
	@$(BIN)/python -m tests.examples.local_model_environment || [ $$? = 77 ]
	$(BIN)/pytest -m long -n 4 --dist worksteal

longest: $(READY)  ## the tests that take a minute or more each
	$(BIN)/pytest -m longest -n 2 --dist worksteal

lint: $(READY)
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(READY)
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

bench: $(READY)  ## what a step, an answer and a worker's start cost, and how soon a lost worker's work goes on; AGAINST=FOLDER
	$(BIN)/python -m bench.step --brief $(if $(AGAINST),--against "$(AGAINST)")
	$(BIN)/python -m bench.one $(if $(AGAINST),--against "$(AGAINST)")
	$(BIN)/python -m bench.drift $(if $(AGAINST),--against "$(AGAINST)")
	$(BIN)/python -m bench.worker_start $(if $(AGAINST),--against "$(AGAINST)")
	$(BIN)/python -m bench.recover
	$(BIN)/python -m bench.false_alarms
	$(BIN)/python -m bench.long
	$(BIN)/python -m bench.snapshots

bench-batch: $(READY)  ## what a batch costs beyond the steps of its samples, its memory and its history
	$(BIN)/python -m bench.batch

bench-many: $(READY)  ## 50 and 500 conversations at once, on one worker process and on four; AGAINST=FOLDER
	$(BIN)/python -m bench.many --conversations 50 $(if $(AGAINST),--against "$(AGAINST)")
	$(BIN)/python -m bench.many --conversations 500 --steps 5 --rounds 1 $(if $(AGAINST),--against "$(AGAINST)")

bench-gateway: $(READY)  ## what following costs: 1,000 idle conversations, 1,000 clients on 200 of which 50 work, and OpenHands
	@$(BIN)/python -m bench.gateway || [ $$? = 77 ]

bench-commands: $(READY)  ## the CPU and the time of each command; AGAINST=FOLDER compares another checkout
	$(BIN)/python -m bench.commands $(if $(AGAINST),--against "$(AGAINST)")

bench-short: $(READY)  ## only that they run, side by side: the figures say nothing
	$(BIN)/python -m bench.short

bfcl: $(VENV)/bfcl  ## the 200 multi-turn conversations of BFCL, with the worker killed all the while
	$(BIN)/python -m examples.bfcl --kill-every 3 --workers 3

bfcl-short: $(VENV)/bfcl  ## the example's own tests, and 20 of the 200
	$(BIN)/pytest -n 2 --dist worksteal tests/examples
	$(BIN)/python -m examples.bfcl --limit 20 --kill-every 3 --workers 3

evals: $(VENV)/evals/ready  ## 5,000 rows of chat sets, whose score is known beforehand
	$(BIN)/python -m examples.evals --concurrency 32

evals-short: $(VENV)/evals/ready $(VENV)/bfcl  ## 300 of them, and 20 of BFCL
	$(BIN)/python -m examples.evals --rows 300
	$(BIN)/python -m examples.evals.bfcl --limit 20

local-model: $(READY)  ## a real model on this machine, small, in an environment of its own: 200 MB
	@$(BIN)/python -m tests.examples.local_model_environment; case $$? in \
		0) $(BIN)/pytest -m long tests/examples/test_local_model.py ;; \
		77) ;; \
		*) exit 1 ;; \
	esac

openhands: $(READY)  ## what we export, read by OpenHands' own models; without a Python 3.12: not checked
	@$(BIN)/python -m tests.exports.openhands_environment; case $$? in \
		0) $(BIN)/pytest tests/exports/test_openhands_models.py ;; \
		77) ;; \
		*) exit 1 ;; \
	esac

validators: $(READY)  ## our exports, read by atif, mistral-common and inspect_ai; without them: not checked
	@$(BIN)/python -m tests.exports.validators_environment; case $$? in \
		0) $(BIN)/pytest tests/exports/test_others.py ;; \
		77) ;; \
		*) exit 1 ;; \
	esac

page: $(READY)  ## the page of the gateway in a real browser, Debian's Chromium; without one: not checked
	@$(BIN)/python -m tests.gateway.page.environment; case $$? in \
		0) $(BIN)/pytest -m page -n 2 --dist worksteal tests/gateway/page ;; \
		77) ;; \
		*) exit 1 ;; \
	esac

page-figures: $(READY)  ## how quickly long conversations open and scroll in it, on a quiet machine
	@$(BIN)/python -m tests.gateway.page.figures || [ $$? = 77 ]

screenshots: $(READY)  ## the pictures of the page in docs/page
	@$(BIN)/python -m tests.gateway.page.screenshots || [ $$? = 77 ]

simulate: $(READY)  ## 10,000 schedules of the log's own code, with everything going wrong
	$(BIN)/python -m reliability.simulation --schedules 10000 --processes 2

soak: $(READY)  ## a million of them
	$(BIN)/python -m reliability.simulation --schedules 1000000 --processes 2

crashes: $(READY)  ## a worker is lost at every store call, tool and step of a conversation
	$(BIN)/python -m reliability.crashes

crashes-short: $(READY)  ## at every ninth of them
	$(BIN)/python -m reliability.crashes --every 9

chaos: $(READY)  ## 300 workers and 10 of Temporal's servers are killed, over a network that fails
	$(BIN)/python -m reliability.chaos

chaos-short: $(READY)  ## 30 and 2 of them
	$(BIN)/python -m reliability.chaos --short

batch-chaos: $(READY)  ## everything is killed, over and over, during a batch of 2,000 samples
	$(BIN)/python -m reliability.batch_chaos

batch-chaos-short: $(READY)  ## of 150
	$(BIN)/python -m reliability.batch_chaos --short

following: $(READY)  ## clients follow while workers, gateways and Temporal are killed every five seconds
	$(BIN)/python -m reliability.following

following-short: $(READY)  ## for half a minute, and not for ten
	$(BIN)/python -m reliability.following --short

attaching: $(READY)  ## 1,000 clients of three kinds attach at random moments, mostly in the middle of an answer
	$(BIN)/python -m reliability.following.attaching

attaching-short: $(READY)  ## 90 of them
	$(BIN)/python -m reliability.following.attaching --short

sessions: $(READY)  ## 200 times, too many conversations begin at once at three gateways, one of which is killed
	$(BIN)/python -m reliability.sessions

sessions-short: $(READY)  ## 15 times
	$(BIN)/python -m reliability.sessions --short

fuzz-api: $(READY)  ## 100,000 requests of two users to the native API, by Schemathesis; without it: not checked
	@$(BIN)/python -m reliability.api.environment; case $$? in \
		0) $(BIN)/python -m reliability.api $(if $(SHORT),--short) ;; \
		77) ;; \
		*) exit 1 ;; \
	esac

fuzz-api-short: $(READY)  ## some 3,000 of them
	@$(MAKE) --no-print-directory fuzz-api SHORT=1

mutants: $(READY)  ## plant 150 faults in the product: the tests of their rooms catch nine of ten
	$(BIN)/python -m reliability.mutants

fuzz: $(READY)  ## what others wrote, as no one would write it
	$(BIN)/python -m reliability.fuzz --seconds 60

sandbox: $(READY)  ## what gets out of the sandboxes that work on this machine: nothing
	$(BIN)/python -m tests.sandbox

damage-short: $(READY)  ## of 1,000
	$(BIN)/python -m reliability.damage --events 1000 --full 50 --files 5

damage: $(READY)  ## every event of 10,000 damaged in every way, and named each time
	$(BIN)/python -m reliability.damage

wheel: $(READY)  ## the wheel in an empty environment, beside packages and folders of the same names
	$(BIN)/python -m reliability.wheel

lock: $(READY)  ## pin what pyproject.toml asks for; the lock names packages and hashes only
	$(BIN)/pip install --quiet uv
	$(BIN)/uv pip compile --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
		--no-annotate --no-header --group dev --extra all pyproject.toml --output-file requirements.lock

clean:
	rm -rf $(VENV)

$(READY): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "perdure needs Python 3.11 or newer: make PYTHON=python3.12 …")'
	@echo "Setting up, once: it takes about a minute. 1/3 a virtual environment in $(VENV)" >&2
	@$(DOTS) $(PYTHON) -m venv $(VENV)
	@echo "2/3 downloading and installing the packages of requirements.lock" >&2
	@$(DOTS) $(BIN)/pip install --quiet --disable-pip-version-check --no-compile --require-hashes -r requirements.lock
	@$(DOTS) $(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@echo "3/3 compiling what every command needs" >&2
	@$(DOTS) $(BIN)/python -c "import perdure.worker, perdure.cli.main, perdure.cli.commands.run, perdure.embedded.stack"
	@nice -n 19 $(BIN)/python -c "import litellm" </dev/null >/dev/null 2>&1 &
	@touch $@

$(VENV)/evals/ready: $(READY) examples/evals/requirements.lock
	$(BIN)/pip download --quiet --disable-pip-version-check --no-deps --require-hashes --only-binary :all: --dest $(VENV)/evals -r examples/evals/requirements.lock
	@touch $@

$(VENV)/bfcl: $(READY) examples/bfcl/requirements.lock
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r examples/bfcl/requirements.lock
	@touch $@
