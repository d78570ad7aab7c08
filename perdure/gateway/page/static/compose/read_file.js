// Reads the files that go with a message; loaded when there is one.

const MAX_DATA_URL = 3_000_000; // characters, below the gateway's limit
const MAX_EDGE = 1568; // pixels: models are shown no more
const MAX_TEXT_BYTES = 200_000;

/** Read an image as a data URL; a large one is made smaller. */
export async function readImage(file) {
  const kept = ["image/png", "image/jpeg", "image/gif", "image/webp"].includes(file.type);
  if (kept) {
    const url = await toDataUrl(file);
    if (url.length <= MAX_DATA_URL) return url;
  }
  const bitmap = await createImageBitmap(file).catch(() => {
    throw new Error(`${file.name} is no image that can be read.`);
  });
  const scale = Math.min(1, MAX_EDGE / Math.max(bitmap.width, bitmap.height));
  const canvas = document.createElement("canvas");
  canvas.width = Math.max(1, Math.round(bitmap.width * scale));
  canvas.height = Math.max(1, Math.round(bitmap.height * scale));
  canvas.getContext("2d").drawImage(bitmap, 0, 0, canvas.width, canvas.height);
  for (const quality of [0.85, 0.6, 0.3]) {
    const url = canvas.toDataURL("image/jpeg", quality);
    if (url.length <= MAX_DATA_URL) return url;
  }
  throw new Error(`${file.name} is too large.`);
}

function toDataUrl(file) {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(reader.result);
    reader.onerror = () => reject(new Error(`${file.name} cannot be read.`));
    reader.readAsDataURL(file);
  });
}

/** Read a text as a block of markdown, under the name of its file. */
export async function readText(file) {
  if (file.size > MAX_TEXT_BYTES) throw new Error(`${file.name} is too long for a message.`);
  const bytes = await file.arrayBuffer();
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
    return `\n\n${file.name}:\n\`\`\`\n${text}\n\`\`\`\n`;
  } catch {
    throw new Error(`${file.name} is neither an image nor a text.`);
  }
}
