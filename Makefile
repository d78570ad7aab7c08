# Two commands do everything on a fresh machine: `make run` and `make test`.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/ready
PIP := $(BIN)/pip install --quiet --disable-pip-version-check

# The tests start many processes: what is compiled once need not be compiled again.
unexport PYTHONDONTWRITEBYTECODE

# Dots on stderr, so that nothing is silent for long while the rest of the line is at work.
DOTS = trap 'kill $$dots; echo >&2' EXIT; { while sleep 2; do printf . >&2; done; } & dots=$$!;

.PHONY: run test short long longest lint format bench bench-batch bench-commands bench-gateway bench-many bench-memory bench-short scale bfcl bfcl-short evals \
	evals-short ag-ui mcp-conformance chat-uis openhands validators deploy-check page page-figures screenshots browser local-model batch-chaos batch-chaos-short \
	simulate simulate-short soak mutants following following-short clients clients-killed clients-short deviations attaching attaching-short schedules schedules-short upgrade drain drain-short webhooks webhooks-short sessions sessions-short fuzz-api fuzz-api-short crashes crashes-short chaos chaos-short fuzz sandbox damage damage-short wheel lock clean

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
	$(BIN)/python -m tests.rerun -n 4 --dist worksteal

long: $(READY)  ## the tests that take their time
	$(BIN)/python -m tests.rerun -m "long and not longest" -n 4 --dist worksteal

longest: $(READY)  ## the tests that take a minute or more each, or that others in CI stand for
	@$(BIN)/python -m tests.examples.local_model_environment || [ $$? = 77 ]
	$(BIN)/python -m tests.rerun -m longest -n 2 --dist worksteal

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
	@$(BIN)/python -m bench.gateway.openhands.history || [ $$? = 77 ]

bench-memory: $(READY) $(VENV)/memory $(VENV)/bfcl  ## 100,000 memories of 50 users, killed ingestion, how well they are found
	$(BIN)/python -m bench.memory

scale: $(READY)  ## 10,000 conversations at rest and 500 at work: memory, how soon a message is answered, lists
	$(BIN)/python -m bench.scale

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

evals-short: $(VENV)/evals/ready $(VENV)/bfcl  ## 300 of them, and 20 of BFCL; not in CI, which has bfcl-short
	$(BIN)/python -m examples.evals --rows 300
	$(BIN)/python -m examples.evals.bfcl --limit 20

local-model: $(READY)  ## a real model on this machine, small, in an environment of its own: 200 MB
	@$(BIN)/python -m tests.examples.local_model_environment; case $$? in \
		0) $(BIN)/pytest -m longest tests/examples/test_local_model.py ;; \
		77) ;; \
		*) exit 1 ;; \
	esac

openhands: $(READY)  ## what we export, read by OpenHands' own models, and its client over our gateway; without a Python 3.12: not checked
	@$(BIN)/python -m tests.exports.openhands_environment; case $$? in \
		0) $(BIN)/pytest -m "long or not long" tests/exports/test_openhands_models.py tests/gateway/openhands ;; \
		77) ;; \
		*) exit 1 ;; \
	esac

ag-ui: $(READY)  ## AG-UI's own client, in Node, over our gateway; without npm or Node: not checked
	@$(BIN)/python -m tests.gateway.ag_ui.environment; case $$? in \
		0) $(BIN)/pytest -m "long or not long" tests/gateway/ag_ui ;; \
		77) ;; \
		*) exit 1 ;; \
	esac

mcp-conformance: $(READY)  ## the Model Context Protocol's own conformance suite over our gateway; without npm or Node: not checked
	@$(BIN)/python -m tests.gateway.mcp.environment; case $$? in \
		0) $(BIN)/pytest -m "long or not long" tests/gateway/mcp/test_conformance.py ;; \
		77) ;; \
		*) exit 1 ;; \
	esac

chat-uis: $(READY)  ## Open WebUI's server and LibreChat's packages over our gateway, 1.4 GB in environments of their own; what is missing: not checked
	@$(BIN)/python -m tests.gateway.chat_uis.environment; case $$? in \
		0) $(BIN)/pytest -m "long or longest" tests/gateway/chat_uis ;; \
		77) ;; \
		*) exit 1 ;; \
	esac

validators: $(READY)  ## our exports, read by atif, mistral-common and inspect_ai; without them: not checked
	@$(BIN)/python -m tests.exports.validators_environment; case $$? in \
		0) $(BIN)/pytest -m "long or not long" tests/exports/test_others.py ;; \
		77) ;; \
		*) exit 1 ;; \
	esac

deploy-check: $(READY)  ## deploy/: the image, Compose, the chart, alerts and dashboard, read by the tools of others; what is missing: not checked
	@$(BIN)/python -m tests.deploy.environment; case $$? in \
		0) $(BIN)/pytest -m "long or not long" tests/deploy ;; \
		77) ;; \
		*) exit 1 ;; \
	esac

page: $(READY)  ## the page of the gateway in a real browser, Debian's Chromium; without one: not checked
	@$(BIN)/python -m tests.gateway.page.environment; case $$? in \
		0) $(BIN)/python -m tests.rerun -m page -n 2 --dist worksteal tests/gateway/page ;; \
		77) ;; \
		*) exit 1 ;; \
	esac

page-figures: $(READY)  ## how quickly long conversations open and scroll in it, on a quiet machine
	@$(BIN)/python -m tests.gateway.page.figures || [ $$? = 77 ]

screenshots: $(READY)  ## the pictures of the page in docs/page
	@$(BIN)/python -m tests.gateway.page.screenshots || [ $$? = 77 ]

browser: $(READY)  ## examples/browser: a page in Chromium, and a worker killed at a click; without npm or Chromium: not checked
	@$(BIN)/python -m tests.examples.browser_environment; case $$? in \
		0) $(BIN)/pytest -m longest tests/examples/test_browser.py ;; \
		77) ;; \
		*) exit 1 ;; \
	esac

simulate: $(READY)  ## 10,000 schedules of the code of logs and what is beside them, with everything going wrong
	$(BIN)/python -m reliability.simulation --schedules 10000 --processes 2

simulate-short: $(READY)  ## 3,000 of them
	$(BIN)/python -m reliability.simulation --schedules 3000 --processes 2

soak: $(READY)  ## a million of them
	$(BIN)/python -m reliability.simulation --schedules 1000000 --processes 2

crashes: $(READY)  ## a worker is lost at every store call, tool and step of a conversation, and of a discussion
	$(BIN)/python -m reliability.crashes
	$(BIN)/python -m reliability.crashes.discussion
	$(BIN)/python -m reliability.crashes.discussion --s3 --every 5

crashes-short: $(READY)  ## at a few of each kind
	$(BIN)/python -m reliability.crashes --short
	$(BIN)/python -m reliability.crashes.discussion --every 61

chaos: $(READY)  ## 300 workers and 10 of Temporal's servers are killed, over a network that fails
	$(BIN)/python -m reliability.chaos

chaos-short: $(READY)  ## 20 and 2 of them
	$(BIN)/python -m reliability.chaos --short

batch-chaos: $(READY)  ## everything is killed, over and over, during a batch of 2,000 samples
	$(BIN)/python -m reliability.batch_chaos

batch-chaos-short: $(READY)  ## of 100
	$(BIN)/python -m reliability.batch_chaos --short

following: $(READY)  ## clients follow while workers, gateways and Temporal are killed every five seconds
	$(BIN)/python -m reliability.following

following-short: $(READY)  ## for half a minute, and not for ten
	$(BIN)/python -m reliability.following --short

clients: $(READY)  ## clients of others, unmodified: each one's tests, chat UIs, what a long log costs, planted deviations, and all of them while what serves them is killed
	@$(BIN)/python -m tests.exports.openhands_environment || [ $$? = 77 ]
	@$(BIN)/python -m tests.gateway.ag_ui.environment || [ $$? = 77 ]
	@$(BIN)/python -m tests.gateway.mcp.environment || [ $$? = 77 ]
	@$(BIN)/python -m tests.gateway.chat_uis.environment || [ $$? = 77 ]
	$(BIN)/pytest -n 2 --dist worksteal -m "long or longest or not long" tests/gateway/turns tests/gateway/openai tests/gateway/openhands \
		tests/gateway/ag_ui tests/gateway/mcp tests/gateway/chat_uis tests/acp tests/gateway/security/test_foreign_surfaces.py \
		tests/gateway/security/test_foreign_limits.py tests/gateway/security/test_mcp_surface.py tests/gateway/security/test_canaries.py
	@$(BIN)/python -m bench.gateway.openhands.history || [ $$? = 77 ]
	@$(MAKE) --no-print-directory clients-killed
	@$(if $(SHORT),true,$(MAKE) --no-print-directory deviations)

clients-killed: $(READY)  ## those of OpenAI, MCP, ACP, OpenHands and AG-UI alone, while workers, gateways and Temporal are killed every five seconds
	@$(BIN)/python -m tests.exports.openhands_environment || [ $$? = 77 ]
	@$(BIN)/python -m tests.gateway.ag_ui.environment || [ $$? = 77 ]
	$(BIN)/python -m reliability.clients $(if $(SHORT),--short)

clients-short: $(READY)  ## kills for half a minute, and not for five; no deviations
	@$(MAKE) --no-print-directory clients SHORT=1

deviations: $(READY)  ## faults planted in what serves clients of others: a test notices each
	@$(BIN)/python -m tests.exports.openhands_environment || [ $$? = 77 ]
	@$(BIN)/python -m tests.gateway.ag_ui.environment || [ $$? = 77 ]
	$(BIN)/python -m reliability.deviations

attaching: $(READY)  ## 1,000 clients of three kinds attach at random moments, mostly in the middle of an answer
	$(BIN)/python -m reliability.following.attaching

attaching-short: $(READY)  ## 90 of them; not in CI, which has following-short
	$(BIN)/python -m reliability.following.attaching --short

sessions: $(READY)  ## 200 times, too many conversations begin at once at three gateways, one of which is killed
	$(BIN)/python -m reliability.sessions

schedules: $(READY)  ## for two minutes, a time of a schedule each second, while workers and Temporal are killed
	$(BIN)/python -m reliability.schedules

schedules-short: $(READY)  ## for 20 seconds
	$(BIN)/python -m reliability.schedules --short

webhooks: $(READY)  ## 1,000 posts to a server that fails half the time, while workers are killed
	$(BIN)/python -m reliability.webhooks

webhooks-short: $(READY)  ## 80 of them
	$(BIN)/python -m reliability.webhooks --short

sessions-short: $(READY)  ## 8 times; not in CI
	$(BIN)/python -m reliability.sessions --short

upgrade: $(READY)  ## workers, Temporal and clients of an earlier version replaced with conversations at work; FROM=CHECKOUT [TEMPORAL=PROGRAM]
	$(if $(FROM),,$(error Name a checkout of an earlier version: FROM=FOLDER))$(BIN)/python -m reliability.upgrade --from "$(FROM)" $(if $(TEMPORAL),--temporal "$(TEMPORAL)")

drain: $(READY)  ## 20 times, SIGTERM to a worker with 50 steps at work, while load goes on
	$(BIN)/python -m reliability.drain

drain-short: $(READY)  ## twice
	$(BIN)/python -m reliability.drain --short

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
	$(BIN)/uv pip compile --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
		--no-annotate --no-header --group dev --extra all pyproject.toml --output-file requirements.lock

clean:
	rm -rf $(VENV)

$(READY): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "perdure needs Python 3.11 or newer: make PYTHON=python3.12 …")'
	@echo "Setting up, once: it takes about a minute. 1/3 a virtual environment in $(VENV)" >&2
	@$(DOTS) $(PYTHON) -m venv $(VENV)
	@echo "2/3 downloading and installing the packages of requirements.lock" >&2
	@awk '/^[^ ]/ {wanted = /^uv==/} wanted' requirements.lock > $(VENV)/uv.lock
	@$(PIP) --require-hashes -r $(VENV)/uv.lock
	@# uv takes a fifth of pip's time. It does not read pip's settings: where packages come from another place, pip goes on.
	@$(DOTS) $(BIN)/uv pip install --quiet --python $(BIN)/python --require-hashes -r requirements.lock \
		|| $(PIP) --no-compile --require-hashes -r requirements.lock
	@$(DOTS) $(PIP) --no-deps --no-build-isolation --editable .
	@echo "3/3 compiling what every command needs" >&2
	@$(DOTS) $(BIN)/python -c "import perdure.worker, perdure.cli.main, perdure.cli.commands.run, perdure.embedded.stack"
	@nice -n 19 $(BIN)/python -c "import litellm" </dev/null >/dev/null 2>&1 &
	@touch $@

$(VENV)/evals/ready: $(READY) examples/evals/requirements.lock
	$(BIN)/pip download --quiet --disable-pip-version-check --no-deps --require-hashes --only-binary :all: --dest $(VENV)/evals -r examples/evals/requirements.lock
	@touch $@

$(VENV)/memory: $(READY) bench/memory/requirements.lock
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r bench/memory/requirements.lock
	@touch $@

$(VENV)/bfcl: $(READY) examples/bfcl/requirements.lock
	$(PIP) --no-deps --require-hashes -r examples/bfcl/requirements.lock
	@touch $@
