// Says every time on the page in the reader's own zone, on hover. Without this module the UTC text stands.
const local = new Intl.DateTimeFormat(undefined, { dateStyle: "full", timeStyle: "long" });

function say(root) {
  for (const element of root.querySelectorAll("time[datetime]")) {
    const instant = new Date(element.dateTime);
    if (!Number.isNaN(instant.valueOf())) element.title = local.format(instant);
  }
}

// What comes to the page later says so itself.
document.addEventListener("arena:fresh", (event) => say(event.target));
say(document);
