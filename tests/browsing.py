"""Pages as their readers see them: the system's Chromium, and what to look for in an open page."""

import re
import shutil

import pytest

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
needs_chromium = pytest.mark.skipif(
    CHROMIUM is None, reason="no Chromium is installed: pages were not looked at"
)

# Relative luminance and contrast as WCAG 2 defines them, for every element that has text of its own.
CONTRAST = """() => {
  const channel = v => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
  const light = c => 0.2126 * channel(c[0]) + 0.7152 * channel(c[1]) + 0.0722 * channel(c[2]);
  const rgba = s => { const n = s.match(/[\\d.]+/g).map(Number); return n.length < 4 ? [...n, 1] : n; };
  const ground = e => { for (; e; e = e.parentElement) {
    const c = rgba(getComputedStyle(e).backgroundColor); if (c[3] === 1) return c; }
    return [255, 255, 255, 1]; };
  const found = [];
  for (const e of document.body.querySelectorAll('*')) {
    const own = [...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim());
    if (!own || !e.getClientRects().length) continue;
    const style = getComputedStyle(e);
    const ink = light(rgba(e.closest('svg') ? style.fill : style.color)), paper = light(ground(e));
    found.push([(Math.max(ink, paper) + 0.05) / (Math.min(ink, paper) + 0.05),
      e.tagName + ' ' + e.textContent.trim().slice(0, 40)]);
  }
  return found;
}"""
UNNAMED = """() => [...document.querySelectorAll('svg')]
  .filter(e => e.getAttribute('role') !== 'img' || !(e.getAttribute('aria-label') || '').trim()).length"""
OVERFLOW = "() => document.documentElement.scrollWidth - document.documentElement.clientWidth"
# What sticks out of the page without standing in a box that scrolls.
OUTSIDE = """() => [...document.querySelectorAll('main *, header *')].filter(e =>
  !e.closest('.scroll, details, .skip, svg') && e.getBoundingClientRect().right > innerWidth + 1)
  .map(e => e.tagName + ' ' + e.className)"""


@pytest.fixture(scope="module")
def browser():
    """The browser, for the tests of one file."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        opened = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        yield opened
        opened.close()


class Visit:
    """An open page, and what it asked for and complained of."""

    def __init__(self, browser, address, width=1280, scheme="light"):
        self.context = browser.new_context(viewport={"width": width, "height": 800}, color_scheme=scheme)
        self.page = self.context.new_page()
        self.requests, self.complaints = [], []
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.failures = []
        self.page.on("requestfailed", lambda request: self.failures.append(request.failure))
        self.page.route(re.compile("^(?!file:)"), lambda route: route.abort())
        self.page.goto(address)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.context.close()
