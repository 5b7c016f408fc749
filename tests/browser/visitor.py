"""A reader with a browser, who records faults that no page should have."""

import json
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, Request, Response

WIDTHS = (320, 768, 1440)
THEMES = ("light", "dark")
HEIGHT = 900
VIOLATION = "content security policy broken"
NOTE_VIOLATIONS = f"""
document.addEventListener("securitypolicyviolation", event => console.error(
  "{VIOLATION}: " + event.violatedDirective + " " + event.blockedURI + " " + event.sample
));
"""
TOO_WIDE = """() => {
  const root = document.documentElement, width = root.clientWidth;
  if (root.scrollWidth <= width) return [];
  const clipped = element => {
    for (let e = element.parentElement; e && e !== document.body; e = e.parentElement)
      if (getComputedStyle(e).overflowX !== "visible") return true;
    return false;
  };
  const wide = [...document.body.querySelectorAll("*")].filter(
    e => e.getBoundingClientRect().right > width + 0.5 && !clipped(e)
  );
  const named = e => `${e.tagName}.${[...e.classList].join(".")} to ${Math.round(e.getBoundingClientRect().right)}`;
  return [`${root.scrollWidth} of ${width}`, ...wide.slice(0, 8).map(named)];
}"""
SETTLED = "() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))"


@dataclass
class Visitor:
    """A page of one browser context. `faults` fills with what should not happen on any page, until `reset`."""

    context: BrowserContext
    page: Page
    url: str
    faults: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, browser: Browser, url: str, *, width: int = WIDTHS[-1], **options: Any) -> "Visitor":
        options.setdefault("timezone_id", "America/New_York")
        context = browser.new_context(
            base_url=url, viewport={"width": width, "height": HEIGHT}, reduced_motion="reduce", **options
        )
        context.set_default_timeout(15_000)
        context.add_init_script(NOTE_VIOLATIONS)
        visitor = cls(context, context.new_page(), url)
        visitor.page.on("console", visitor._record_message)
        visitor.page.on("pageerror", lambda error: visitor.faults.append(f"exception: {error}"))
        context.on("request", visitor._record_request)
        return visitor

    def reset(self) -> None:
        """Forgets the faults so far and looks as at first."""
        self.faults.clear()
        self.resize(WIDTHS[-1], "light")

    def sign_in(self, name: str, password: str) -> None:
        """Logs in to the admin."""
        self.go("/admin/login/?next=/admin/")
        self.page.fill("input[name=username]", name)
        self.page.fill("input[name=password]", password)
        self.page.click("[type=submit]")
        self.page.wait_for_url("**/admin/")

    def go(self, path: str, *, status: int = 200) -> Response:
        """Opens a page of the site, which must answer with `status`."""
        answer = self.page.goto(path)
        assert answer is not None
        assert answer.status == status, f"{path}: {answer.status}"
        if status >= 400:  # the browser itself notes that the page is an error
            self.faults[:] = [fault for fault in self.faults if f"status of {status}" not in fault]
        return answer

    def resize(self, width: int, theme: str) -> None:
        """Changes the window and the theme of the page that is open."""
        self.page.set_viewport_size({"width": width, "height": HEIGHT})
        self.page.emulate_media(color_scheme=theme)  # type: ignore[arg-type]

    def too_wide(self) -> list[str]:
        """The elements that reach out of the page to the right, if it can be scrolled sideways."""
        return list(self.page.evaluate(TOO_WIDE))

    def settle(self) -> None:
        """Waits until what a change led to is drawn. For a page whose scripts may run."""
        self.page.evaluate(SETTLED)

    def json(self, path: str, **query: Any) -> Any:
        """The API's answer at a path."""
        answer = self.context.request.get(path, params=query)
        assert answer.ok, f"{path}: {answer.status}"
        return json.loads(answer.body())

    def close(self) -> None:
        self.context.close()

    def _record_message(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning", "assert"):
            self.faults.append(f"{message.type}: {message.text} ({message.location.get('url', '')})")

    def _record_request(self, request: Request) -> None:
        if urlsplit(request.url).scheme not in ("data", "blob") and not request.url.startswith(self.url + "/"):
            self.faults.append(f"request to another host: {request.url}")
