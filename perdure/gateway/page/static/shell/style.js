// Styles that only some views need.

/** Load a style of the page, once. */
export function loadStyle(path) {
  const address = new URL(`../${path}`, import.meta.url).href;
  if (document.querySelector(`link[href="${address}"]`)) return;
  const link = document.createElement("link");
  link.rel = "stylesheet";
  link.href = address;
  document.head.append(link);
}
