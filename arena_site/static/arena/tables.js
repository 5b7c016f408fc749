// Tables that sort by a click on a column's heading, and links that copy their address.

const NUMBER = /[+−-]?[\d,]*\.?\d+/;
const LEAST_ROWS = 3;

function sortKey(cell) {
  const time = cell.querySelector("time[datetime]");
  if (time) return time.dateTime;
  const text = cell.firstChild ? cell.firstChild.textContent.trim() || cell.textContent.trim() : "";
  const number = NUMBER.exec(text.replaceAll(",", ""));
  if (cell.classList.contains("number")) return number ? Number(number[0].replace("−", "-")) : null;
  return cell.textContent.trim().toLowerCase();
}

function compare(a, b, ascending) {
  if (a === null || b === null) return (a === null) - (b === null); // missing values last, either way
  return (a < b ? -1 : a > b ? 1 : 0) * (ascending ? 1 : -1);
}

function sort(table, column, heading) {
  const ascending = heading.getAttribute("aria-sort") !== "ascending";
  for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
  heading.setAttribute("aria-sort", ascending ? "ascending" : "descending");
  const body = table.tBodies[0];
  const rows = [...body.rows].map((row) => [sortKey(row.cells[column]), row]);
  rows.sort((a, b) => compare(a[0], b[0], ascending));
  body.append(...rows.map(([, row]) => row));
}

// Whole tables of one row of headings. The server sorts lists of several pages, by links in their headings.
function sorts(table) {
  const rows = table.tHead ? table.tHead.rows : [];
  if (rows.length !== 1 || table.matches(".grid, .comparison") || document.querySelector(".pagination")) return false;
  return table.tBodies[0].rows.length >= LEAST_ROWS && !table.tHead.querySelector("a:not(.term-link), [colspan]");
}

for (const table of [...document.querySelectorAll(".scrollable > table")].filter(sorts)) {
  table.classList.add("sortable");
  [...table.tHead.rows[0].cells].forEach((heading, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "sort";
    button.addEventListener("click", () => sort(table, column, heading));
    const term = heading.querySelector(".term"); // which has a button of its own, for its definition
    if (term) button.setAttribute("aria-label", `Sort by ${term.textContent}`);
    else button.append(...heading.childNodes);
    heading.append(button);
  });
}

// On a phone each row of a table becomes a card (arena.css), in which a cell needs the heading of its column.
const LONG_TEXT = 34; // characters beyond which a cell takes the whole width

function nameCells(table) {
  const head = table.tHead?.rows.length === 1 ? table.tHead.rows[0] : null;
  if (!head || table.closest("figure") || table.querySelector("tbody [colspan], tbody [rowspan]")) return;
  const names = [...head.cells].map(columnName);
  set(table, { role: "table" });
  set(table.tHead, { role: "rowgroup" });
  set(head, { role: "row" });
  for (const cell of head.cells) set(cell, { role: "columnheader" });
  table.tHead.classList.toggle("plain", !table.tHead.querySelector("a, button"));
  for (const body of table.tBodies) {
    set(body, { role: "rowgroup" });
    for (const row of body.rows) {
      set(row, { role: "row" });
      [...row.cells].forEach((cell, column) => {
        const heads = cell.tagName === "TH";
        set(cell, { role: heads ? "rowheader" : "cell" });
        if (heads) return;
        cell.dataset.label = names[column];
        cell.classList.toggle("long", cell.textContent.trim().length > LONG_TEXT);
      });
    }
  }
  table.classList.add("stacked");
}

function columnName(cell) {
  const name = (cell.querySelector(".term") ?? cell).cloneNode(true);
  name.querySelectorAll("small").forEach((note) => note.remove()); // it stays in the heading above the cards
  return name.textContent.trim().replace(/\s+/g, " ");
}

function set(element, attributes) {
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
}

document.querySelectorAll(".scrollable > table").forEach(nameCells);

// Only what scrolls needs the keyboard's focus.
function updateFocus(region) {
  const cut = region.scrollWidth > region.clientWidth || region.scrollHeight > region.clientHeight;
  if (cut) region.tabIndex = 0;
  else if (region !== document.activeElement) region.removeAttribute("tabindex");
}

const resized = new ResizeObserver((entries) => entries.forEach(({ target }) => updateFocus(target)));
for (const region of document.querySelectorAll(".scrollable:has(> table)")) {
  updateFocus(region);
  resized.observe(region);
}
