// Counts down to the jobs that are due. Without this module the times as of the page's drawing remain.
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

setInterval(tick, SECOND);
