// The status of a conversation in words.

const WORDS = {
  idle: "Idle",
  loading: "Loading",
  running: "Running",
  paused: "Paused",
  waiting_for_confirmation: "Needs approval",
  waiting_for_answer: "Asks you",
  waiting: "Waiting",
  awaiting_user: "Your turn",
  finished: "Finished",
  rejected: "Refused",
  limited: "Limit reached",
  error: "Error",
  stuck: "Stuck",
  closed: "Closed",
};

export const STATUSES = Object.keys(WORDS);

/** Return the status as a person is told of it; a gateway of before has only the status itself. */
export function phaseOf(status) {
  return status.phase ?? status.status;
}

/** Tell what is loaded before the agent goes on, and which model is asked again; else an empty text. */
export function progressOf(status) {
  const { loading = [], retry = null } = status.detail ?? {};
  const servers = loading.filter((each) => each.what === "mcp_server").map((each) => each.name);
  const others = loading.filter((each) => each.what !== "mcp_server").map(describeOther);
  const starting = servers.length ? [`Starting the MCP server${servers.length > 1 ? "s" : ""} ${servers.join(", ")}`] : [];
  return [...others, ...starting, ...(retry ? [describeRetry(retry)] : [])].join(". ");
}

function describeOther({ what, name }) {
  const verb = { restore: "Restoring", clone: "Cloning" }[what] ?? "Preparing";
  return `${verb} the ${name ?? "conversation"}`;
}

function describeRetry({ model, kind, attempt, next_at: at }) {
  const when = at ? ` at ${at.slice(11, 19)} UTC` : "";
  return `${model ?? "The model"} failed (${kind.replaceAll("_", " ")}): attempt ${attempt}${when}`;
}

/** Tell what an agent waits for that asks nobody. */
export function describeWait(wait) {
  const signal = wait?.signal ? ` for the signal “${wait.signal}”` : "";
  const until = wait?.until ? ` until ${formatMoment(wait.until)}` : "";
  return `Waits${signal}${until}`;
}

/** Format a time in UTC: `2026-03-01 09:25:07 UTC`. */
export function formatMoment(at) {
  return `${at.slice(0, 10)} ${at.slice(11, 19)} UTC`;
}

/** Return the word for a status; one of a newer version is shown as it is. */
export function statusWord(status) {
  return WORDS[status] ?? status;
}

/** Return the class of the colour of a status. */
export function statusClass(status) {
  return `status-${status in WORDS ? status : "idle"}`;
}

/** Tell what a conversation waits for; an empty text if for nothing. */
export function waitsFor(status) {
  if (status.trouble) return status.trouble;
  switch (status.status) {
    case "waiting_for_confirmation": {
      const asking = status.pending.filter((call) => call.asks).map((call) => call.tool_name);
      return `Wants to run ${asking.join(", ") || "a tool"}`;
    }
    case "waiting_for_answer":
      return status.detail?.wait?.question ?? "Waits for your answer";
    case "waiting":
      return describeWait(status.detail?.wait);
    case "paused":
      return status.reason ? `Paused: ${status.reason}` : "Paused: resume it";
    case "finished":
      return phaseOf(status) === "rejected" ? `Refused: ${status.reason ?? "the agent did not say why"}` : "";
    case "error":
    case "stuck":
      return status.reason ?? "Resume it, or send a message";
    default:
      return "";
  }
}
