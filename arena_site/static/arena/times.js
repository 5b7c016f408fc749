// Says every time on the page in the reader's own zone, on hover. Without this module the UTC text stands.
const local = new Intl.DateTimeFormat(undefined, { dateStyle: "full", timeStyle: "long" });
for (const element of document.querySelectorAll("time[datetime]")) {
  const instant = new Date(element.dateTime);
  if (!Number.isNaN(instant.valueOf())) element.title = local.format(instant);
}
