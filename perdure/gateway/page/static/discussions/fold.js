// The rows of a discussion, folded from its events: speeches, summaries, votes, and what is between.

export const COLOURS = 6; // which speakers take in turn

/** Return the rows of events in order, each with the sequence of its first event. */
export function foldEvents(events) {
  const rows = [];
  for (const event of events) addEvent(rows, event);
  return rows;
}

function addEvent(rows, event) {
  const row = { seq: event.sequence, speaker: event.speaker, event };
  switch (event.type) {
    case "INTENT":
      addIntent(rows, event);
      break;
    case "SPEECH":
      rows.push({ ...row, kind: "speech", text: textOf(event.content) });
      break;
    case "SUMMARY":
      rows.push({ ...row, kind: "summary", text: textOf(event.content) });
      break;
    case "VOTE":
      rows.push(event.speaker === "system" ? { ...row, kind: "tally", ...readTally(event.content) } : { ...row, kind: "vote", ...readBallot(event.content) });
      break;
    default:
      addSystem(rows, row, event);
  }
}

/** Put an intent beside those of the same round. */
function addIntent(rows, event) {
  const { urgency, line } = typeof event.content === "object" ? event.content : { line: textOf(event.content) };
  const intent = { speaker: event.speaker, urgency: urgency ?? null, line: line ?? "", granted: false };
  const last = rows.at(-1);
  if (last?.kind === "intents") last.intents.push(intent);
  else rows.push({ seq: event.sequence, kind: "intents", event, intents: [intent] });
}

function addSystem(rows, row, event) {
  const { action, details = {} } = event.content ?? {};
  if (action === "GRANT") {
    const asked = rows.findLast((it) => it.kind === "intents")?.intents.find((it) => it.speaker === details.speaker);
    if (asked) asked.granted = true; // the speech of anybody else says enough
  } else if (action === "PHASE_TRANSITION") {
    rows.push({ ...row, kind: "phase", from: details.from, to: details.to });
  } else {
    rows.push({ ...row, kind: "note", text: describeAction(action, details, event) });
  }
}

function describeAction(action, details, event) {
  switch (action) {
    case "OPENED":
      return `Opened: ${[].concat(details.agents ?? []).join(", ")}`;
    case "JOINED":
      return `${details.speaker} takes part`;
    case "PASSED_OVER":
      return `${details.speaker} is passed over: ${details.reason}`;
    case "CLOSED":
      return "Closed";
    default:
      return textOf(event.content);
  }
}

function readBallot(content) {
  if (content === null || typeof content !== "object") return { ballot: textOf(content), reason: "" };
  return { ballot: textOf(content.ballot ?? content), reason: content.reason ?? "" };
}

function readTally(content) {
  const counts = typeof content?.counts === "object" ? content.counts : {};
  return { phase: content?.phase ?? "", counts, winner: content?.winner ?? null };
}

/** Count the ballots since the last tally, by what was voted for; a voter's last ballot counts. */
export function countBallots(rows) {
  const ballots = new Map();
  for (const row of rows) {
    if (row.kind === "tally" || row.kind === "phase") ballots.clear();
    else if (row.kind === "vote") ballots.set(row.speaker, row.ballot);
  }
  const counts = {};
  for (const ballot of ballots.values()) counts[ballot] = (counts[ballot] ?? 0) + 1;
  return counts;
}

/** Return the colour of each speaker, a number from 1: agents first, and others as they come. */
export function assignColours(agents, events) {
  const colours = new Map();
  const take = (name) => colours.has(name) || colours.set(name, (colours.size % COLOURS) + 1);
  agents.forEach(take);
  for (const { speaker, type } of events) if (type === "SPEECH" || type === "VOTE" || type === "INTENT") take(speaker);
  for (const name of ["system", "moderator"]) colours.delete(name);
  return colours;
}

/** Return a content as text: JSON on one line. */
function textOf(content) {
  return typeof content === "string" ? content : JSON.stringify(content);
}
