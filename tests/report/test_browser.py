"""A report as its readers see it: on a phone, on a desk, in the dark, in print, by keyboard; no network."""

import re

import pytest
from tests.browsing import CONTRAST, OUTSIDE, OVERFLOW, UNNAMED, Visit, browser, needs_chromium
from tests.report.publications import hostile_page, page

__all__ = ["browser"]  # a fixture
pytestmark = needs_chromium


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "report.html"
    path.write_text(page(), "utf-8")
    return path.as_uri()


@pytest.mark.parametrize("width", [320, 360, 768, 1280])
def test_the_page_fits_its_width_asks_for_nothing_and_complains_of_nothing(browser, address, width):
    with Visit(browser, address, width) as visit:
        assert visit.page.evaluate(OVERFLOW) <= 0
        assert visit.page.evaluate(OUTSIDE) == []
        assert visit.page.evaluate(UNNAMED) == 0
        assert visit.requests == [address]
        assert visit.complaints == []


@pytest.mark.parametrize("width", [360, 1280])
def test_a_page_of_hostile_names_fits_too(browser, tmp_path, width):
    path = tmp_path / "hostile.html"
    path.write_text(hostile_page(), "utf-8")
    with Visit(browser, path.as_uri(), width) as visit:
        assert visit.page.evaluate(OVERFLOW) <= 0
        assert visit.page.evaluate(OUTSIDE) == []
        assert visit.requests == [path.as_uri()]
        assert visit.complaints == []


def test_a_page_that_asks_complains_or_is_too_wide_is_noticed(browser, tmp_path):
    path = tmp_path / "broken.html"
    # Without the policy, which alone would stop the request.
    open_page = re.sub(r"<meta http-equiv[^>]*>", "", page())
    broken = '<main><p style="width:99rem">wide</p><img src="http://localhost:9/x.png" alt="">'
    path.write_text(open_page.replace("<main>", broken), "utf-8")
    with Visit(browser, path.as_uri(), 360) as visit:
        assert visit.page.evaluate(OVERFLOW) > 0
        assert visit.page.evaluate(OUTSIDE) == ["P "]
        assert "http://localhost:9/x.png" in visit.requests
        assert visit.complaints


def test_the_policy_stops_what_a_mistake_would_ask_for(browser, tmp_path):
    path = tmp_path / "broken.html"
    path.write_text(page().replace("<main>", '<main><img src="http://localhost:9/x.png" alt="">'), "utf-8")
    with Visit(browser, path.as_uri()) as visit:
        assert visit.failures == ["csp"]
        assert any("Content Security Policy" in line for line in visit.complaints)


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (1280, "dark"), (360, "dark")])
def test_all_text_has_a_contrast_of_at_least_4_5(browser, address, width, scheme):
    with Visit(browser, address, width, scheme) as visit:
        visit.page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
        found = visit.page.evaluate(CONTRAST)
        assert len(found) > 300
        assert any(name.startswith("text ") for _, name in found)
        assert [one for one in found if one[0] < 4.5] == []


def test_pale_text_is_noticed(browser, address):
    with Visit(browser, address) as visit:
        visit.page.add_style_tag(content="figcaption { color: #999 !important }")
        assert any(one[0] < 4.5 for one in visit.page.evaluate(CONTRAST))


def test_the_dark_page_is_dark_and_its_charts_follow(browser, address):
    ink = "() => getComputedStyle(document.querySelector('.wide svg text')).fill"
    paper = "() => getComputedStyle(document.body).backgroundColor"
    with Visit(browser, address) as light, Visit(browser, address, scheme="dark") as dark:
        assert sum(map(int, re.findall(r"\d+", light.page.evaluate(paper)))) > 600
        assert sum(map(int, re.findall(r"\d+", dark.page.evaluate(paper)))) < 150
        assert light.page.evaluate(ink) != dark.page.evaluate(ink)


@pytest.mark.parametrize(("width", "shown", "hidden"), [(1280, "wide", "narrow"), (360, "narrow", "wide")])
def test_a_phone_has_charts_of_its_own(browser, address, width, shown, hidden):
    with Visit(browser, address, width) as visit:
        assert visit.page.locator(f"figure .{shown} svg").first.is_visible()
        assert not visit.page.locator(f"figure .{hidden} svg").first.is_visible()
        # Letters of charts stay readable: a drawing is hardly scaled down.
        scale = "e => e.getBoundingClientRect().width / e.viewBox.baseVal.width"
        scales = visit.page.locator(f"figure .{shown} svg").evaluate_all(f"all => all.map({scale})")
        assert min(scales) > 0.85


def test_the_print_has_pages_without_cut_charts_and_with_what_was_folded(browser, address):
    with Visit(browser, address) as visit:
        printed = visit.page.pdf(prefer_css_page_size=True)
        pages = len(re.findall(rb"/Type\s*/Page\b", printed))
        assert 4 <= pages <= 25
        boxes = {tuple(map(float, box.split())) for box in re.findall(rb"/MediaBox \[([^\]]+)\]", printed)}
        assert all(abs(box[2] - 595) < 2 and abs(box[3] - 842) < 2 for box in boxes)
        visit.page.emulate_media(media="print")
        folded = visit.page.locator("details > div")
        assert min(folded.evaluate_all("all => all.map(e => e.getBoundingClientRect().height)")) > 20
        avoided = visit.page.locator("figure").evaluate_all(
            "all => all.map(e => getComputedStyle(e).breakInside)"
        )
        assert set(avoided) == {"avoid"}
        # A figure is lower than a page, so that it can be kept whole.
        heights = visit.page.locator("figure").evaluate_all(
            "all => all.map(e => e.getBoundingClientRect().height)"
        )
        assert max(heights) < 950


def test_the_keyboard_reaches_every_link_fold_and_table(browser, address):
    with Visit(browser, address) as visit:
        wanted = visit.page.locator("a, summary, [tabindex='0']").count()
        seen = []
        for _ in range(wanted):
            visit.page.keyboard.press("Tab")
            seen.append(
                visit.page.evaluate("[...document.querySelectorAll('*')].indexOf(document.activeElement)")
            )
        assert len(set(seen)) == wanted
        assert seen == sorted(seen)
        outlines = "e => getComputedStyle(e).outlineStyle"
        visit.page.keyboard.press("Shift+Tab")
        assert visit.page.locator(":focus").evaluate(outlines) == "solid"
        visit.page.locator("summary").first.focus()
        visit.page.keyboard.press("Enter")
        assert visit.page.locator("details").first.evaluate("e => e.open")


def test_the_skip_link_shows_when_it_has_the_focus(browser, address):
    with Visit(browser, address) as visit:
        visit.page.keyboard.press("Tab")
        assert visit.page.locator(".skip").bounding_box()["x"] >= 0
