"""The names of spans, attributes and metrics.

Those that begin with `perdure.` are ours; all others are of OpenTelemetry's semantic conventions,
in the version below. No library is imported here, so that a test can compare the names with those
which the conventions publish.
"""

CONVENTIONS_VERSION = "1.44.0"
"""The version of the semantic conventions that the names are of."""

SCHEMA_URL = f"https://opentelemetry.io/schemas/{CONVENTIONS_VERSION}"

# Operations, by which spans are named: `chat {model}`, `execute_tool {tool}`.
CHAT = "chat"
EXECUTE_TOOL = "execute_tool"
INVOKE_AGENT = "invoke_agent"
CONDENSE = "condense"
STORAGE_APPEND = "storage.append"

# Attributes of the conventions.
OPERATION = "gen_ai.operation.name"
PROVIDER = "gen_ai.provider.name"
CONVERSATION_ID = "gen_ai.conversation.id"
AGENT_NAME = "gen_ai.agent.name"
REQUEST_MODEL = "gen_ai.request.model"
RESPONSE_MODEL = "gen_ai.response.model"
RESPONSE_ID = "gen_ai.response.id"
FINISH_REASONS = "gen_ai.response.finish_reasons"
TIME_TO_FIRST_CHUNK = "gen_ai.response.time_to_first_chunk"
INPUT_TOKENS = "gen_ai.usage.input_tokens"
OUTPUT_TOKENS = "gen_ai.usage.output_tokens"
CACHE_READ_TOKENS = "gen_ai.usage.cache_read.input_tokens"
CACHE_WRITE_TOKENS = "gen_ai.usage.cache_creation.input_tokens"
REASONING_TOKENS = "gen_ai.usage.reasoning.output_tokens"
TOKEN_TYPE = "gen_ai.token.type"
TOOL_NAME = "gen_ai.tool.name"
TOOL_TYPE = "gen_ai.tool.type"
TOOL_CALL_ID = "gen_ai.tool.call.id"
TOOL_ARGUMENTS = "gen_ai.tool.call.arguments"
TOOL_RESULT = "gen_ai.tool.call.result"
INPUT_MESSAGES = "gen_ai.input.messages"
OUTPUT_MESSAGES = "gen_ai.output.messages"
MCP_METHOD = "mcp.method.name"
MCP_PROTOCOL_VERSION = "mcp.protocol.version"
MCP_SESSION_ID = "mcp.session.id"
JSONRPC_REQUEST_ID = "jsonrpc.request.id"
RPC_STATUS = "rpc.response.status_code"
NETWORK_TRANSPORT = "network.transport"
NETWORK_PROTOCOL = "network.protocol.name"
NETWORK_PROTOCOL_VERSION = "network.protocol.version"
HTTP_METHOD = "http.request.method"
HTTP_ROUTE = "http.route"
HTTP_STATUS = "http.response.status_code"
URL_PATH = "url.path"
URL_SCHEME = "url.scheme"
SERVER_ADDRESS = "server.address"
SERVER_PORT = "server.port"
ERROR_TYPE = "error.type"
USER_ID = "user.id"

# Attributes of ours.
COST = "perdure.usage.cost"
"""US dollars."""
EVENT_KEY = "perdure.event.key"
"""The key of an event in the store: where the content is that a span does not have."""
EVENT_COUNT = "perdure.event.count"
PURPOSE = "perdure.purpose"
"""Why a model was asked, if not for the next step: condense, title, ask, delegate, grade."""
TURN = "perdure.turn"
STATUS = "perdure.status"
REASON = "perdure.reason"
ATTEMPT = "perdure.attempt"
"""The number of the attempt that did the step; the first is 1."""
RESTORED = "perdure.restored"
"""Whether an earlier attempt had done the step, whose result was found."""
BATCH = "perdure.batch"

# Metrics of the conventions.
TOKEN_USAGE = "gen_ai.client.token.usage"
OPERATION_DURATION = "gen_ai.client.operation.duration"
OPERATION_FIRST_CHUNK = "gen_ai.client.operation.time_to_first_chunk"

# Metrics of ours.
MODEL_COST = "perdure.model.cost"
TURN_DURATION = "perdure.turn.duration"
APPEND_DURATION = "perdure.storage.append.duration"
STORAGE_RETRIES = "perdure.storage.retries"
STEP_RETRIES = "perdure.step.retries"
STEPS_RECOVERED = "perdure.steps.recovered"
CONVERSATIONS = "perdure.conversations"
APPROVALS_WAITING = "perdure.approvals.waiting"
STREAM_LAG = "perdure.stream.lag"
BATCH_SAMPLES = "perdure.batch.samples"

# The environment variables of OpenTelemetry that decide what is exported.
CAPTURE_CONTENT_VARIABLE = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
ENDPOINT_VARIABLE = "OTEL_EXPORTER_OTLP_ENDPOINT"
TRACES_ENDPOINT_VARIABLE = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
METRICS_ENDPOINT_VARIABLE = "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT"
