// Follows a run on its page in the admin. Without this module a reload shows how far it is.
const INTERVAL_MS = 2000;
const container = document.getElementById("run");

function isRunning() {
  return container.querySelector("[data-status]")?.dataset.status === "running";
}

async function follow() {
  if (!isRunning()) return;
  try {
    const response = await fetch(container.dataset.live, { headers: { Accept: "text/html" } });
    // A session that has ended leads to the login form.
    if (!response.ok || response.redirected) return;
    const page = new DOMParser().parseFromString(await response.text(), "text/html");
    container.replaceChildren(...page.body.childNodes);
  } catch {
    // The server is restarting; the next try may reach it.
  }
  setTimeout(follow, INTERVAL_MS);
}

if (container) setTimeout(follow, INTERVAL_MS);
