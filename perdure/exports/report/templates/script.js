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
