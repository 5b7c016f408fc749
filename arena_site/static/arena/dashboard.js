// Counts down to the jobs that are due, and searches the actions. Without this module the times as of the page's drawing
// and all actions remain.
const SECOND = 1000, MINUTE = 60 * SECOND, HOUR = 60 * MINUTE, DAY = 24 * HOUR;

function remaining(span) {
  if (span <= 0) return "due now";
  if (span < HOUR) return `in ${Math.floor(span / MINUTE)}:${String(Math.floor((span % MINUTE) / SECOND)).padStart(2, "0")}`;
  if (span < DAY) return `in ${Math.floor(span / HOUR)} h ${Math.floor((span % HOUR) / MINUTE)} min`;
  return `in ${Math.floor(span / DAY)} d ${Math.floor((span % DAY) / HOUR)} h`;
}

function tick() {
  for (const element of document.querySelectorAll("time[data-countdown]")) {
    element.textContent = remaining(new Date(element.dateTime) - Date.now());
  }
}

// Shows the actions, and the groups with any, whose text has each word of the search.
function filter(search, entries) {
  const words = search.value.toLowerCase().split(/\s+/);
  for (const entry of entries) {
    const text = `${entry.textContent} ${entry.closest("section").querySelector("h3").textContent}`.toLowerCase();
    entry.hidden = !words.every((word) => text.includes(word));
  }
  for (const group of new Set(entries.map((entry) => entry.closest("section")))) {
    group.hidden = !group.querySelector("li:not([hidden])");
  }
}

for (const box of document.querySelectorAll("[data-filter]")) {
  const search = box.querySelector("input"), entries = [...document.querySelectorAll(box.dataset.filter)];
  box.hidden = false;
  search.addEventListener("input", () => filter(search, entries));
}

setInterval(tick, SECOND);
