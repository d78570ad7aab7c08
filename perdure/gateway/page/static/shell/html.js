// What templates are made of: one import for all of lit-html that the page uses.

export { html, nothing, render, svg } from "../vendor/lit-html/lit-html.js";
export { guard } from "../vendor/lit-html/directives/guard.js";
export { repeat } from "../vendor/lit-html/directives/repeat.js";
