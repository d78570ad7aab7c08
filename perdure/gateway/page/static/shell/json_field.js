// JSON that a user writes in a field.

/** Write an object as JSON that is easy to edit. */
export function formatJson(value) {
  return JSON.stringify(value, null, 2);
}

/** Parse a JSON object; `subject` begins the sentence of the error. Throws Error. */
export function parseObject(text, subject) {
  let value;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new Error(`${subject} no JSON: ${error.message}`);
  }
  if (value === null || typeof value !== "object" || Array.isArray(value)) throw new Error(`${subject} no JSON object: write {"field": value}.`);
  return value;
}
