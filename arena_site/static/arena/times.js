// Shows times in the reader's own zone on hover. Without this module the UTC text remains.
const localFormat = new Intl.DateTimeFormat(undefined, { dateStyle: "full", timeStyle: "long" });

function addTitles(root) {
  for (const element of root.querySelectorAll("time[datetime]")) {
    const instant = new Date(element.dateTime);
    if (!Number.isNaN(instant.valueOf())) element.title = localFormat.format(instant);
  }
}

// charts.js replaces sections of a page.
document.addEventListener("arena:section-replaced", (event) => addTitles(event.target));
addTitles(document);
