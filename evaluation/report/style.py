"""How a page looks on a screen, in the dark and on paper, and its few lines of script."""

STYLE = """
:root { color-scheme: light dark; font: 15px/1.55 system-ui, -apple-system, "Segoe UI", sans-serif;
 --page: #f7f8f8; --card: #fff; --ink: #1b2026; --soft: #5a6570; --line: #dde2e6;
 --main: #2468a8; --good: #1f7a5a; --warn: #b7791f; --bad: #bf3f1c; --busy: #7c6bb5;
 --idle: #b9c1c8; --tint: #eef3f8; }
@media screen and (prefers-color-scheme: dark) { :root { --page: #121518; --card: #1a1e22;
 --ink: #e6e9ec; --soft: #9aa6b1; --line: #2e353b; --main: #68aee8; --good: #4fbf93;
 --warn: #ddb04e; --bad: #f28a63; --busy: #a99be0; --idle: #525c66; --tint: #20282f; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 72rem; padding: 1.5rem 1.25rem 4rem; background: var(--page);
 color: var(--ink); }
header { border-bottom: 2px solid var(--main); padding-bottom: .9rem; }
h1 { font-size: 1.9rem; line-height: 1.2; margin: .1rem 0 .4rem; overflow-wrap: anywhere; }
h2 { font-size: 1.25rem; margin: 2.4rem 0 .7rem; }
h3 { font-size: 1rem; margin: 1.4rem 0 .4rem; overflow-wrap: anywhere; }
p { margin: .4rem 0; max-width: 60rem; }
a { color: var(--main); }
nav { margin-top: .8rem; }
nav a { margin-right: 1rem; white-space: nowrap; }
.kicker, .soft, figcaption span, summary, dt, footer { color: var(--soft); font-size: .875rem; }
.kicker { text-transform: uppercase; letter-spacing: .08em; font-weight: 600; }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(9.5rem, 1fr)); gap: .8rem;
 margin: 1.2rem 0; }
.tile, figure, .box { background: var(--card); border: 1px solid var(--line);
 border-radius: .5rem; padding: .8rem 1rem; margin: 0; }
.tile b.bad { color: var(--bad); }
.tile b { display: block; font-size: 1.65rem; line-height: 1.25; font-weight: 650;
 font-variant-numeric: tabular-nums; overflow-wrap: anywhere; }
.figures { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(26rem, 100%), 1fr));
 gap: .8rem; align-items: start; }
figure { overflow-x: auto; }
figcaption b { display: block; overflow-wrap: anywhere; }
svg { display: block; width: 100%; min-width: 24rem; max-width: 40rem; height: auto;
 font-size: 11px; margin-top: .5rem; }
svg.thin { min-width: 0; max-width: none; }
svg text { fill: var(--ink); font-size: 11px; }
svg text.soft { fill: var(--soft); font-size: 11px; }
.fill-main { fill: var(--main); } .fill-good { fill: var(--good); }
.fill-warn { fill: var(--warn); }
.fill-bad { fill: var(--bad); } .fill-busy { fill: var(--busy); } .fill-idle { fill: var(--idle); }
.line { stroke: var(--line); } .axis { stroke: var(--soft); }
.error { stroke: var(--ink); stroke-width: 1.5; }
.mark { stroke: var(--bad); stroke-width: 1.5; stroke-dasharray: 4 3; }
.scroll { overflow-x: auto; margin: .7rem 0; }
table { border-collapse: collapse; font-size: .9rem; background: var(--card); min-width: 50%; }
th, td { text-align: left; vertical-align: top; padding: .32rem .7rem;
 border-bottom: 1px solid var(--line); overflow-wrap: anywhere; unicode-bidi: plaintext; }
th { color: var(--soft); font-weight: 600; white-space: nowrap; background: var(--tint); }
td.n, th.n { text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums; }
td.long { max-width: 22rem; }
#rows td:first-child { min-width: 7rem; }
tr.failed td:nth-child(3) { color: var(--bad); font-weight: 600; }
tr.wrong td:nth-child(3), tr.limited td:nth-child(3) { color: var(--warn); font-weight: 600; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .25rem 1.2rem; margin: .5rem 0; }
dd { margin: 0; overflow-wrap: anywhere; unicode-bidi: plaintext; }
pre { white-space: pre-wrap; overflow-wrap: anywhere; font-size: .8rem; }
code { font-size: .85em; }
i.key { display: inline-block; width: .75rem; height: .75rem; border-radius: .15rem;
 margin-right: .35rem; vertical-align: -.08rem; }
i.main { background: var(--main); } i.good { background: var(--good); }
i.warn { background: var(--warn); } i.bad { background: var(--bad); }
i.busy { background: var(--busy); } i.idle { background: var(--idle); }
.legend span { margin-right: 1.2rem; white-space: nowrap; }
.verdict { border-left: .3rem solid var(--idle); padding: .5rem 1rem; background: var(--card);
 font-size: 1.05rem; }
.verdict.better { border-color: var(--good); } .verdict.worse { border-color: var(--bad); }
.filter { display: none; gap: .8rem; align-items: center; flex-wrap: wrap; margin: .6rem 0; }
.scripted .filter { display: flex; }
.scripted th[data-sort] { cursor: pointer; text-decoration: underline dotted; }
input, select { font: inherit; color: inherit; background: var(--card); padding: .25rem .5rem;
 border: 1px solid var(--line); border-radius: .3rem; }
footer { margin-top: 3rem; border-top: 1px solid var(--line); padding-top: .8rem; }
@media print { body { max-width: none; padding: 0; background: none; font-size: 10pt; }
 nav, .filter, .scripted .filter { display: none; } h2 { break-after: avoid; }
 figure, .tile, tr { break-inside: avoid; } svg { min-width: 0; }
 .scroll, figure { overflow: visible; }
 .tile, figure, table, .box { background: none; }
 * { print-color-adjust: exact; -webkit-print-color-adjust: exact; } }
"""

SCRIPT = """
document.documentElement.classList.add("scripted");
const body = document.querySelector("#rows tbody"), said = document.querySelector("#said");
const words = document.querySelector("#words"), kind = document.querySelector("#kind");
if (body) {
  const rows = [...body.rows];
  const texts = rows.map(row => row.textContent.toLowerCase());
  const filter = () => {
    const asked = words.value.toLowerCase();
    let left = 0;
    rows.forEach((row, at) => {
      const fits = texts[at].includes(asked) && (!kind.value || row.className === kind.value);
      row.hidden = !fits;
      left += fits;
    });
    said.textContent = `${left} of ${rows.length} rows`;
  };
  words.addEventListener("input", filter);
  kind.addEventListener("change", filter);
  filter();
  document.querySelectorAll("#rows th[data-sort]").forEach(head => {
    let sign = -1;
    head.addEventListener("click", () => {
      sign = -sign;
      const key = row => row.cells[head.cellIndex].dataset.value ?? "";
      const compare = new Intl.Collator(undefined, {numeric: true}).compare;
      const order = head.dataset.sort === "number" ? (a, b) => key(a) - key(b)
        : (a, b) => compare(a.cells[head.cellIndex].textContent,
                            b.cells[head.cellIndex].textContent);
      body.append(...[...body.rows].sort((a, b) => sign * order(a, b)));
    });
  });
}
"""
