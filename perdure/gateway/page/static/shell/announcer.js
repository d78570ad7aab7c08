// Says to screen readers what changes without being asked for.

let region = null;

/** Return the live region, which is made at its first use. */
function liveRegion() {
  if (region === null) {
    region = document.createElement("div");
    region.className = "visually-hidden";
    region.setAttribute("role", "status");
    region.setAttribute("aria-live", "polite");
    document.body.append(region);
  }
  return region;
}

/** Say a sentence; the same sentence twice in a row is said once. */
export function announce(sentence) {
  const target = liveRegion();
  if (target.textContent !== sentence) target.textContent = sentence;
}
