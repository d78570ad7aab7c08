// The status of a conversation in words.

const WORDS = {
  idle: "Idle",
  running: "Running",
  paused: "Paused",
  waiting_for_confirmation: "Needs approval",
  finished: "Finished",
  error: "Error",
  stuck: "Stuck",
  closed: "Closed",
};

export const STATUSES = Object.keys(WORDS);

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
    case "paused":
      return status.reason ? `Paused: ${status.reason}` : "Paused: resume it";
    case "error":
    case "stuck":
      return status.reason ?? "Resume it, or send a message";
    default:
      return "";
  }
}
