// Terminal output: colours as classes, progress lines as a terminal leaves them.

const SEQUENCE = /\u001b\[([0-?]*)[ -/]*([@-~])|\u001b\][^\u0007\u001b]*(?:\u0007|\u001b\\)|\u001b[@-Z\\^_=>]/g;

/**
 * Split terminal output into `{text, classes}` of one look each.
 *
 * Colours become the classes `fg-0` to `fg-15` and `bg-0` to `bg-15`; the 256 and the 16 million
 * colours become the nearest of these, as no style may stand in the page.
 */
export function parseAnsi(output) {
  const parts = [];
  let look = {};
  let from = 0;
  const text = applyCarriageReturns(output);
  const push = (until) => {
    if (until > from) parts.push({ text: text.slice(from, until), classes: classesOf(look) });
  };
  for (const match of text.matchAll(SEQUENCE)) {
    push(match.index);
    from = match.index + match[0].length;
    if (match[2] === "m") look = applyCodes(look, match[1]);
  }
  push(text.length);
  return parts;
}

/** Keep of each line what stands after its last carriage return, as a terminal shows it. */
export function applyCarriageReturns(output) {
  if (!output.includes("\r")) return output;
  return output
    .replaceAll("\r\n", "\n")
    .split("\n")
    .map((line) => line.replace(/\r+$/, ""))
    .map((line) => line.slice(line.lastIndexOf("\r") + 1))
    .join("\n");
}

function applyCodes(before, text) {
  const codes = text.split(/[;:]/).map(Number);
  let look = { ...before };
  for (let at = 0; at < codes.length; at += 1) {
    const code = codes[at];
    if (code === 0) look = {};
    else if (code === 1) look.bold = true;
    else if (code === 2) look.dim = true;
    else if (code === 3) look.italic = true;
    else if (code === 4) look.underline = true;
    else if (code === 7) look.inverse = true;
    else if (code === 22) look.bold = look.dim = false;
    else if (code === 23) look.italic = false;
    else if (code === 24) look.underline = false;
    else if (code === 27) look.inverse = false;
    else if (code >= 30 && code <= 37) look.fg = code - 30;
    else if (code >= 90 && code <= 97) look.fg = code - 82;
    else if (code === 39) delete look.fg;
    else if (code >= 40 && code <= 47) look.bg = code - 40;
    else if (code >= 100 && code <= 107) look.bg = code - 92;
    else if (code === 49) delete look.bg;
    else if (code === 38 || code === 48) at += extendedColour(look, code === 38 ? "fg" : "bg", codes.slice(at + 1));
  }
  return look;
}

/** Apply a colour of 256 or of 16 million; returns the number of codes that it takes. */
function extendedColour(look, side, codes) {
  if (codes[0] === 5) {
    look[side] = nearestOf256(codes[1] ?? 0);
    return 2;
  }
  if (codes[0] === 2) {
    look[side] = nearest(codes.slice(1, 4).map((value) => value || 0));
    return 4;
  }
  return 0;
}

function nearestOf256(number) {
  if (number < 16) return number;
  if (number >= 232) return nearest(Array(3).fill(8 + (number - 232) * 10));
  const index = number - 16;
  return nearest([index / 36, (index / 6) % 6, index % 6].map((step) => Math.floor(step) * 51));
}

/** Return the number of the nearest of the 16 colours. */
function nearest([red = 0, green = 0, blue = 0]) {
  const brightest = Math.max(red, green, blue);
  if (brightest < 48) return 0;
  const bit = (value) => (value > brightest / 2 ? 1 : 0);
  const base = bit(red) | (bit(green) << 1) | (bit(blue) << 2);
  if (base === 7 && brightest < 160) return 8;
  return brightest > 192 ? base + 8 : base;
}

function classesOf(look) {
  const names = ["bold", "dim", "italic", "underline", "inverse"].filter((name) => look[name]).map((name) => `ansi-${name}`);
  if (look.fg !== undefined) names.push(`fg-${look.fg}`);
  if (look.bg !== undefined) names.push(`bg-${look.bg}`);
  return names.join(" ");
}
