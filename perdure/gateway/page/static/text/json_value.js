// JSON in tool results: whether a text is JSON, and what its table would be.

const MAX_CHARS = 200_000;
export const MAX_TABLE_ROWS = 100;
const MAX_COLUMNS = 12;

/** Parse a text that is a JSON object or array; null if it is none, or too long. */
export function parseJson(text) {
  const trimmed = text.trim();
  if (trimmed.length > MAX_CHARS || !/^[[{]/.test(trimmed)) return null;
  try {
    const value = JSON.parse(trimmed);
    return typeof value === "object" ? value : null;
  } catch {
    return null;
  }
}

/**
 * Return the table of a JSON value: `{columns, rows, left}` with `left` rows left out.
 *
 * An array of objects has a column a key; an object has the columns "key" and "value". Returns
 * null for all other values.
 */
export function tableOf(value) {
  if (Array.isArray(value)) {
    if (!value.length || !value.every(isPlainObject)) return null;
    const columns = [...new Set(value.flatMap(Object.keys))];
    if (columns.length > MAX_COLUMNS) return null;
    const rows = value.slice(0, MAX_TABLE_ROWS).map((item) => columns.map((column) => item[column]));
    return { columns, rows, left: value.length - rows.length };
  }
  if (!isPlainObject(value) || !Object.keys(value).length) return null;
  const entries = Object.entries(value);
  const rows = entries.slice(0, MAX_TABLE_ROWS);
  return { columns: ["key", "value"], rows, left: entries.length - rows.length };
}

/** Write a value in a cell. */
export function cellText(value) {
  if (value === undefined) return "";
  return typeof value === "string" ? value : JSON.stringify(value);
}

function isPlainObject(value) {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
