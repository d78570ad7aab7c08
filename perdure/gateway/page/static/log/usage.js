// Tokens, costs and times in words.

// Each of these takes as long to make as a thousand uses of it.
const NUMBERS = new Intl.NumberFormat("en-US");
const TIMES = new Intl.DateTimeFormat(undefined, { timeStyle: "medium" });
const DATES = new Intl.DateTimeFormat(undefined, { dateStyle: "medium" });
const MOMENTS = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });

/** Return the tokens of a usage. */
export function countTokens(usage) {
  return (usage?.prompt_tokens ?? 0) + (usage?.completion_tokens ?? 0);
}

/** Write a number with a thousands separator. */
export function formatNumber(number) {
  return NUMBERS.format(number);
}

/** Write a number of tokens: `812`, `12.3k`, `4.1M`. */
export function formatTokens(tokens) {
  if (tokens < 1000) return String(tokens);
  if (tokens < 999_950) return `${(tokens / 1000).toFixed(1)}k`;
  return `${(tokens / 1e6).toFixed(1)}M`;
}

/** Write the cost of a usage; one that is not wholly known is not $0. */
export function formatCost(usage, unknownText = "unknown") {
  const cost = usage?.cost ?? 0;
  const unknown = (usage?.unpriced_tokens ?? 0) > 0;
  if (unknown && !cost) return unknownText;
  return `${formatDollars(cost)}${unknown ? " and more" : ""}`;
}

/** Write US dollars with as many digits as say something. */
export function formatDollars(cost) {
  if (cost === 0) return "$0";
  return cost < 0.01 ? `$${cost.toFixed(4)}` : `$${cost.toFixed(2)}`;
}

/** Write a duration in seconds: `0.4 s`, `12 s`, `3 min 20 s`, `2 h 5 min`. */
export function formatSeconds(seconds) {
  if (seconds < 0.05) return "0 s";
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  if (seconds < 60) return `${Math.round(seconds)} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min ${Math.floor(seconds % 60)} s`;
  const hours = Math.floor(minutes / 60);
  if (hours < 48) return `${hours} h ${minutes % 60} min`;
  return `${Math.floor(hours / 24)} days`;
}

/** Parse a time of the log or of the gateway, both UTC, into milliseconds; NaN without one. */
export function parseTime(text) {
  if (!text) return NaN;
  return Date.parse(/(Z|[+-]\d\d:?\d\d)$/.test(text) ? text : `${text}Z`);
}

/** Return the seconds between two times. */
export function secondsBetween(before, after) {
  return Math.max(0, (parseTime(after) - parseTime(before)) / 1000);
}

/** Write how long ago something was: `just now`, `5 min ago`, `3 h ago`, or its date. */
export function formatAge(text, now = Date.now()) {
  const seconds = (now - parseTime(text)) / 1000;
  if (Number.isNaN(seconds)) return "";
  if (seconds < 45) return "just now";
  if (seconds < 3600) return `${Math.max(1, Math.round(seconds / 60))} min ago`;
  if (seconds < 86_400) return `${Math.round(seconds / 3600)} h ago`;
  if (seconds < 7 * 86_400) return `${Math.round(seconds / 86_400)} d ago`;
  return DATES.format(parseTime(text));
}

/** Write the time of day of an event, or for another day the date with it. */
export function formatMoment(text, now = Date.now()) {
  const date = new Date(parseTime(text));
  if (Number.isNaN(date.getTime())) return "";
  const sameDay = date.toDateString() === new Date(now).toDateString();
  return sameDay ? TIMES.format(date) : MOMENTS.format(date);
}
