"""Keys of every object in a store.

users/{user_id}/conversations/{conversation_id}/
    base_state.json                  spec and last known state: a cache
    events/000000_{event_id}.json    one object per event
    responses/000007.json            a completion as received, of which several events follow
    blobs/{sha256}                   bytes too long for an event
    segments/000000-001000.jsonl     copies of the events in these slots, for cold reads
    segments/tail                    the hashes of the events behind the last segment
    trouble.json                     why it does not continue: a cache
    llm_messages.json                its messages, once a turn is over: a copy
    workspace/{sha256}               a snapshot of its files: storage/snapshots
    workspace/packs/{sha256}         the bytes of files that snapshots refer to
    workspace/changes/000007         what a turn changed in a directory of the user's
    fork.json                        whose slots come before its own, where it is a fork
    forks/{conversation_id}.json     one object for each of its forks
    grants/{user_id}.json            what another user may do with it
users/{user_id}/batches/{name}/
    batch.json                       its spec, and which samples it has now
    samples/{set}/000000.jsonl       up to 100 of them, one a line
    results/{sample}/{epoch}-{number}.json    the result of one attempt
    results/{sample}/{epoch}-{number}/{scorer}.json   a reply of a grading model, as received
    grants/{user_id}.json            what another user may do with it
users/{user_id}/discussions/{session_id}/
    spec.json                        its topic, its agents and its phases, if perdure runs it
    state.json                       what its events come to: a cache
    events/000001.json               one object per event of the log that its agents share
    archive/000001.json              which events one pruning took out of sight
    ids/{event_id}                   the end of the log before an event whose writer chose its id
users/{user_id}/state/{name}.json    a value that all conversations of a user share
users/{user_id}/agents/{name}.json            a named agent of the user
users/{user_id}/settings.json                 what the user says of all agents
users/{user_id}/openai/conversations/{id}.json   one that was made without an agent, until it begins
users/{user_id}/openai/chats/{id}.json        the conversation in which a chat goes on
users/{user_id}/memory/{id}.000001.json      a memory, as this version of it was written
users/{user_id}/memory-changes/{id}.000001   says that the index may lack this version
users/{user_id}/memory-changes/rebuild-{id}   says that somebody makes the index anew
users/{user_id}/memory-index/                the index of LanceDB: made of the memories, a cache
users/{user_id}/index/{random}.jsonl          summaries of conversations: a cache of lists
users/{user_id}/hidden/{conversation_id}      hides a conversation from lists
users/{user_id}/keys/{id}                     marks an API key as the user's
users/{user_id}/secrets/{NAME}/000001.json    a version of a secret of the user's, encrypted
users/{user_id}/addresses/{id}                marks an address to which others post as the user's
users/{user_id}/secrets/@webhooks/{id}/000001.json    a version of a webhook, encrypted
users/{user_id}/shared/{kind}/{owner}/{id}    says where a grant for the user may be
app/state/{name}.json                a value that all conversations share
gateway/keys/{id}/                   an API key: storage/credentials
    key.json                         its user, its scopes and its hash
    used.json                        when it was used last
    revoked                          is there once it is revoked
gateway/addresses/{id}.json          an address to which others post: whose it is, its hash
gateway/requests/                    requests that may be repeated after a time-out
    {until}-{sha256}.json            what one has begun; the time is in seconds since 1970
gateway/tokens/{kind}/               sessions of browsers, tickets, one-time logins
    {expires}-{sha256}.json          whose it is; the time is in seconds since 1970
    {expires}-{sha256}.used          is there once it was used, if that is for one time
"""

import hashlib
import re
from functools import lru_cache
from urllib.parse import quote
from uuid import UUID

USERS = "users/"
LAST_SEQ = 999_999
"""The largest number of six digits: one more would no longer sort."""

UUID_VARIANTS = "89ab"
"""The first characters of the fourth part of an id that is a UUID of a version."""

STATE = "base_state.json"
TROUBLE = "trouble.json"
LLM_MESSAGES = "llm_messages.json"
FORK_RUN = "fork"
"""The run in the origin of the events that begin a fork."""
FORK = "fork.json"
FORKS = "forks/"
BLOBS = "blobs/"
EVENTS = "events/"
GRANTS = "grants/"
SEGMENTS = "segments/"
TAIL = f"{SEGMENTS}tail"
RESPONSES = "responses/"
APP_STATE = "app/state/"
WEBHOOKS = "@webhooks/"
BATCH = "batch.json"
RESULTS = "results/"
DISCUSSION = "spec.json"
DISCUSSION_STATE = "state.json"
ARCHIVE = "archive/"
API_KEYS = "gateway/keys/"
BEGUN_REQUESTS = "gateway/requests/"
TOKENS = "gateway/tokens/"
ADDRESSES = "gateway/addresses/"

MAX_KEY_NAME_BYTES = 120
"""Bytes of a sample's id or a scorer's name in a key; a longer one ends with its hash."""

_USER = re.compile(r"(?!\.\.?$)[A-Za-z0-9._@-]{1,128}")
_CONVERSATION = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_BATCH = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}")
_SESSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
_AGENT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_SECRET = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}|@webhooks/[0-9a-f]{16}")
_WEBHOOK = re.compile(r"[0-9a-f]{16}")
_API_KEY = re.compile(r"[0-9a-f]{16}")
_BLOB = re.compile(r"blobs/[0-9a-f]{64}")


def _check(text: str, pattern: re.Pattern[str], rule: str) -> str:
    if not pattern.fullmatch(text):
        raise ValueError(f"{text!r} is not {rule}")
    return text


# Each prefix raises ValueError for an id or a name that could leave it.
def conversations_prefix(user_id: str) -> str:
    return f"{_user_prefix(user_id)}conversations/"


def memory_prefix(user_id: str) -> str:
    return f"{_user_prefix(user_id)}memory/"


def memory_changes_prefix(user_id: str) -> str:
    return f"{_user_prefix(user_id)}memory-changes/"


def memory_index_prefix(user_id: str) -> str:
    return f"{_user_prefix(user_id)}memory-index/"


def memory_version(memory_id: str, version: int) -> str:
    """Return the name of a version of a memory within a prefix, without its ending."""
    return f"{check_memory_id(memory_id)}.{_six_digits(version)}"


def check_memory_id(memory_id: str) -> str:
    """Return the id of a memory. Raises ValueError for an invalid one."""
    rule = "the id of a memory: use a UUID, in lower case and with its hyphens."
    return _check(memory_id, _CONVERSATION, rule)


def user_state_prefix(user_id: str) -> str:
    return f"{_user_prefix(user_id)}state/"


def agents_prefix(user_id: str) -> str:
    return f"{_user_prefix(user_id)}agents/"


def agent_key(user_id: str, name: str) -> str:
    """Return the key of a user's named agent. Raises ValueError for a bad name."""
    rule = (
        "the name of an agent: use letters, digits and '.', '_', '-', and begin with a letter or a "
        "digit."
    )
    return f"{agents_prefix(user_id)}{_check(name, _AGENT, rule)}.json"


def user_settings_key(user_id: str) -> str:
    return f"{_user_prefix(user_id)}settings.json"


def openai_key(user_id: str, kind: str, conversation_id: str) -> str:
    """Return the key of an object of OpenAI's API. Raises ValueError for a bad id."""
    rule = "a conversation id: use a UUID, in lower case and with its hyphens."
    name = _check(conversation_id, _CONVERSATION, rule)
    return f"{_user_prefix(user_id)}openai/{kind}/{name}.json"


def index_prefix(user_id: str) -> str:
    return f"{_user_prefix(user_id)}index/"


def hidden_prefix(user_id: str) -> str:
    return f"{_user_prefix(user_id)}hidden/"


def hidden_key(user_id: str, conversation_id: str) -> str:
    """Return the key of the mark that hides a conversation. Raises ValueError for a bad id."""
    conversation_prefix(user_id, conversation_id)
    return f"{hidden_prefix(user_id)}{conversation_id}"


def user_keys_prefix(user_id: str) -> str:
    return f"{_user_prefix(user_id)}keys/"


def user_secrets_prefix(user_id: str) -> str:
    return f"{_user_prefix(user_id)}secrets/"


def webhook_folder(webhook_id: str) -> str:
    """Return the folder of a webhook among a user's secrets, as which it is listed and encrypted.

    Raises ValueError for what is no id of a webhook.
    """
    return f"{WEBHOOKS}{_check(webhook_id, _WEBHOOK, 'the id of a webhook: it has 16 hex digits.')}"


def is_secret_folder(name: str) -> bool:
    """Tell whether a user's secret, or a webhook, may have this folder."""
    return _SECRET.fullmatch(name) is not None


def secret_key(user_id: str, name: str, version: int) -> str:
    folder = _check(name, _SECRET, "the name of a secret.")
    return f"{user_secrets_prefix(user_id)}{folder}/{_six_digits(version)}.json"


def user_addresses_prefix(user_id: str) -> str:
    return f"{_user_prefix(user_id)}addresses/"


def user_address_key(user_id: str, address_id: str) -> str:
    return f"{user_addresses_prefix(user_id)}{_check_address(address_id)}"


def address_key(address_id: str) -> str:
    """Return the key of an address to which others post. Raises ValueError for a bad id."""
    return f"{ADDRESSES}{_check_address(address_id)}.json"


def _check_address(address_id: str) -> str:
    return _check(address_id, _WEBHOOK, "the id of an address: it has 16 hex digits.")


def shared_prefix(user_id: str, kind: str) -> str:
    return f"{_user_prefix(user_id)}shared/{kind}/"


def batches_prefix(user_id: str) -> str:
    return f"{_user_prefix(user_id)}batches/"


def batch_prefix(user_id: str, name: str) -> str:
    rule = (
        "the name of a batch: use letters, digits and '.', '_', '-', and begin with a letter or a "
        "digit."
    )
    return f"{batches_prefix(user_id)}{_check(name, _BATCH, rule)}/"


def discussions_prefix(user_id: str) -> str:
    return f"{_user_prefix(user_id)}discussions/"


def discussion_prefix(user_id: str, session_id: str) -> str:
    rule = (
        "the id of a discussion: use letters, digits and '.', '_', '-', and begin with a letter or "
        "a digit."
    )
    return f"{discussions_prefix(user_id)}{_check(session_id, _SESSION, rule)}/"


def shared_event_key(sequence: int) -> str:
    """Return the key of an event of a discussion, which has no random part: see `event_id`."""
    return f"{EVENTS}{_six_digits(sequence)}.json"


def archive_key(number: int) -> str:
    return f"{ARCHIVE}{_six_digits(number)}.json"


def chosen_id_key(event_id: str) -> str:
    return f"ids/{escape_name(event_id)}"


def chunk_key(samples: str, chunk: int) -> str:
    return f"samples/{samples}/{_six_digits(chunk)}.jsonl"


def result_folder(sample: str) -> str:
    """Return the folder of the attempts at a sample, whatever characters its id has."""
    return f"{RESULTS}{escape_name(sample)}/"


def attempt_key(sample: str, epoch: int, number: int) -> str:
    return f"{result_folder(sample)}{epoch}-{number}.json"


def grading_key(sample: str, epoch: int, number: int, scorer: str) -> str:
    return f"{result_folder(sample)}{epoch}-{number}/{escape_name(scorer)}.json"


def escape_name(name: str) -> str:
    """Escape the name as one part of a key, injectively."""
    safe = quote(name, safe="")
    if len(safe) > MAX_KEY_NAME_BYTES or safe.startswith("."):
        sha = hashlib.sha256(name.encode()).hexdigest()
        return f"{safe[:MAX_KEY_NAME_BYTES].lstrip('.')}-{sha[:16]}"
    return safe


def _user_prefix(user_id: str) -> str:
    return f"{USERS}{check_user_id(user_id)}/"


def check_user_id(user_id: str) -> str:
    """Return the user id. Raises ValueError for an invalid one."""
    rule = "a user id: use 1 to 128 letters, digits and '.', '_', '@', '-'."
    return _check(user_id, _USER, rule)


def conversation_prefix(user_id: str, conversation_id: str) -> str:
    rule = "a conversation id: use a UUID, in lower case and with its hyphens."
    return f"{conversations_prefix(user_id)}{_check(conversation_id, _CONVERSATION, rule)}/"


def is_conversation_id(text: str) -> bool:
    return _CONVERSATION.fullmatch(text) is not None


def is_derived(conversation_id: str) -> bool:
    """Check whether the id was made from a name, as of a delegated conversation or a sample's."""
    return conversation_id[14] == "5" and conversation_id[19] in UUID_VARIANTS


def is_timed(conversation_id: str) -> bool:
    """Check whether the id begins with the time at which it was made, as ours do."""
    return conversation_id[14] == "7" and conversation_id[19] in UUID_VARIANTS


def event_id(conversation_id: str, seq: int) -> str:
    """Return the id of the one event that slot `seq` may hold, known before the event is."""
    # As `uuid.uuid5` makes it, in a quarter of the time: each slot that is listed or read has one.
    name = _namespace(conversation_id) + str(seq).encode()
    digest = bytearray(hashlib.sha1(name, usedforsecurity=False).digest()[:16])
    digest[6] = digest[6] & 0x0F | 0x50
    digest[8] = digest[8] & 0x3F | 0x80
    text = digest.hex()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


@lru_cache(maxsize=1000)
def _namespace(conversation_id: str) -> bytes:
    return UUID(conversation_id).bytes


def event_key(conversation_id: str, seq: int) -> str:
    return f"{EVENTS}{_six_digits(seq)}_{event_id(conversation_id, seq)}.json"


def start_after(seq: int) -> str:
    """Return a key that sorts before that of slot `seq` and after that of the slot before it."""
    return f"{EVENTS}{_six_digits(seq)}"


def response_key(seq: int) -> str:
    return f"{RESPONSES}{_six_digits(seq)}.json"


def segment_key(first: int, end: int) -> str:
    return f"{SEGMENTS}{_six_digits(first)}-{end:06d}.jsonl"


def blob_key(sha256: str) -> str:
    return f"{BLOBS}{sha256}"


def fork_mark_key(conversation_id: str) -> str:
    return f"{FORKS}{conversation_id}.json"


def api_key_prefix(key_id: str) -> str:
    return f"{API_KEYS}{_check(key_id, _API_KEY, 'the id of an API key: it has 16 hex digits.')}/"


def grant_key(user_id: str) -> str:
    return f"{GRANTS}{check_user_id(user_id)}.json"


def check_blob_key(key: str) -> None:
    _check(key, _BLOB, "the key of a blob: they look like 'blobs/' and 64 hex.")


def _six_digits(seq: int) -> str:
    if not 0 <= seq <= LAST_SEQ:
        raise ValueError(f"A log has slots 0 to {LAST_SEQ:,}, not {seq:,}: fork the conversation.")
    return f"{seq:06d}"
