"use strict";
// Sorts a table by the column whose title is clicked.
for (const table of document.querySelectorAll("table.sortable")) {
  const heads = Array.from(table.tHead.rows[0].cells);
  heads.forEach((head, column) => {
    head.addEventListener("click", () => {
      const upwards = head.getAttribute("aria-sort") !== "ascending";
      const body = table.tBodies[0];
      const rows = Array.from(body.rows).map((row) => {
        const cell = row.cells[column];
        const number = cell.dataset.v === undefined ? NaN : Number(cell.dataset.v);
        return { row, number, text: cell.textContent, missing: cell.classList.contains("missing") };
      });
      rows.sort((a, b) => {
        if (a.missing !== b.missing) return a.missing ? 1 : -1;
        const both = !Number.isNaN(a.number) && !Number.isNaN(b.number);
        const order = both ? a.number - b.number : a.text.localeCompare(b.text, "en", { numeric: true });
        return upwards ? order : -order;
      });
      body.replaceChildren(...rows.map((entry) => entry.row));
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", upwards ? "ascending" : "descending");
    });
  });
}
// Says above a table that it continues to the right, if it does by more than a scroll bar.
{
  const watch = new ResizeObserver((changes) => changes.forEach(({ target }) => {
    target.previousElementSibling.hidden = target.scrollWidth <= target.clientWidth + 20;
  }));
  document.querySelectorAll("figure.table > .scroll").forEach((box) => watch.observe(box));
}
