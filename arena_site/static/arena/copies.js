// A link with data-copy copies its address, after the text of that attribute if it has one.
// Without this module, and where the browser forbids it, the link is followed.
const isPlainClick = (event) => !(event.button || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey);

document.addEventListener("click", async (event) => {
  const link = event.target.closest?.("a[data-copy]");
  if (!link || !isPlainClick(event) || !navigator.clipboard) return;
  event.preventDefault();
  try {
    await navigator.clipboard.writeText([link.dataset.copy, link.href].filter(Boolean).join(" "));
    const text = (link.dataset.text ??= link.textContent);
    link.textContent = link.dataset.copy ? "Copied" : "Link copied";
    setTimeout(() => (link.textContent = text), 3000);
  } catch {
    location.assign(link.href);
  }
});
