"use strict";

// A click on a heading sorts its table; better values first, then the other way round. What did not run stays last.
for (const table of document.querySelectorAll("table")) {
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => {
    head.querySelector("button").addEventListener("click", () => sort(table, heads, head, column));
  });
}

function sort(table, heads, head, column) {
  const other = { ascending: "descending", descending: "ascending" };
  const order = other[head.getAttribute("aria-sort")] ?? head.dataset.first ?? "ascending";
  const sign = order === "ascending" ? 1 : -1;
  const value = (row) => row.cells[column].dataset.value;
  const compare = (one, two) => {
    if (column === 0) return sign * one.cells[0].textContent.localeCompare(two.cells[0].textContent);
    if (value(one) === undefined || value(two) === undefined) {
      return (value(one) === undefined) - (value(two) === undefined);
    }
    return sign * (Number(value(one)) - Number(value(two)));
  };
  const body = table.tBodies[0];
  body.append(...[...body.rows].sort(compare));
  for (const each of heads) each.setAttribute("aria-sort", each === head ? order : "none");
  table.closest("section").querySelector("[role=status]").textContent = `Sorted by ${head.textContent.trim()}, ${order}.`;
}
