"""The gallery as its readers see it: on a phone, on a desk, in the dark, in print, by keyboard."""

import re

import pytest
from tests.browsing import CONTRAST, OVERFLOW, UNNAMED, Visit, browser, needs_chromium
from tests.lab.small_figures import BROKEN, FAILING, GOOD, HOSTILE, LONG

from sfumato.lab.gallery import write

__all__ = ["browser"]  # a fixture
pytestmark = needs_chromium
# What sticks out of the page without standing in a box that scrolls.
OUTSIDE = """() => [...document.querySelectorAll('main *, header *')].filter(e =>
  !e.closest('.picture, details, .skip, .unseen') && e.getBoundingClientRect().right > innerWidth + 1)
  .map(e => e.tagName + ' ' + e.className)"""
BOXES = "all => all.map(e => [e.getBoundingClientRect().left, e.getBoundingClientRect().top])"


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    which = [GOOD, LONG, FAILING, HOSTILE, BROKEN]
    return write(tmp_path_factory.mktemp("gallery"), which=which, effort="quick").as_uri()


@pytest.mark.parametrize("width", [320, 390, 768, 1280, 1700])
def test_the_page_fits_its_width_asks_for_nothing_and_complains_of_nothing(browser, address, width):
    with Visit(browser, address, width) as visit:
        visit.page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
        assert visit.page.evaluate(OVERFLOW) <= 0
        assert visit.page.evaluate(OUTSIDE) == []
        assert visit.page.evaluate(UNNAMED) == 0
        assert visit.requests == [address]
        assert visit.complaints == []


@pytest.mark.parametrize(("width", "beside"), [(1280, True), (390, False)])
def test_the_two_modes_stand_side_by_side_where_there_is_room(browser, address, width, beside):
    with Visit(browser, address, width) as visit:
        (left, top), (right, below) = visit.page.locator("#figure-1 .plate").evaluate_all(BOXES)
        assert (right > left + 300) == beside
        assert (below > top + 100) != beside
        # Letters of charts stay readable: a drawing is hardly scaled down.
        scale = "e => e.getBoundingClientRect().width / e.viewBox.baseVal.width"
        scales = visit.page.locator("#figure-1 figure svg").evaluate_all(f"all => all.map({scale})")
        assert min(scales) > 0.8


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (1280, "dark"), (390, "dark")])
def test_all_text_has_a_contrast_of_at_least_4_5(browser, address, width, scheme):
    with Visit(browser, address, width, scheme) as visit:
        visit.page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
        found = visit.page.evaluate(CONTRAST)
        assert len(found) > 300
        assert any(name.startswith("text ") for _, name in found)
        assert [one for one in found if one[0] < 4.5] == []


def test_the_dark_page_is_dark_and_its_charts_follow(browser, address):
    lines = "() => getComputedStyle(document.querySelector('.picture svg [stroke=\"#0072B2\" i]')).stroke"
    paper = "() => getComputedStyle(document.body).backgroundColor"
    with Visit(browser, address) as light, Visit(browser, address, scheme="dark") as dark:
        assert sum(map(int, re.findall(r"\d+", dark.page.evaluate(paper)))) < 150
        assert light.page.evaluate(lines) == "rgb(0, 114, 178)"
        assert dark.page.evaluate(lines) == "rgb(92, 179, 230)"


def test_the_print_is_light_whole_and_without_long_tables(browser, address):
    with Visit(browser, address, scheme="dark") as visit:
        printed = visit.page.pdf(prefer_css_page_size=True)
        assert 5 <= len(re.findall(rb"/Type\s*/Page\b", printed)) <= 30
        visit.page.emulate_media(media="print", color_scheme="dark")
        paper = visit.page.evaluate("() => getComputedStyle(document.body).backgroundColor")
        assert paper == "rgb(255, 255, 255)"
        assert not visit.page.locator(".numbers").first.is_visible()
        figures = visit.page.locator(".plate figure")
        assert set(figures.evaluate_all("all => all.map(e => getComputedStyle(e).breakInside)")) == {"avoid"}
        # A figure is lower than a page, so that it can be kept whole.
        heights = figures.evaluate_all("all => all.map(e => e.getBoundingClientRect().height)")
        assert max(heights) < 950


def test_the_keyboard_reaches_every_link_fold_and_picture(browser, address):
    with Visit(browser, address) as visit:
        visit.page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
        wanted = visit.page.locator("a, summary, [tabindex='0']").count()
        seen = []
        for _ in range(wanted):
            visit.page.keyboard.press("Tab")
            seen.append(
                visit.page.evaluate("[...document.querySelectorAll('*')].indexOf(document.activeElement)")
            )
        assert len(set(seen)) == wanted > 40
        assert seen == sorted(seen)


def test_the_skip_link_leads_to_the_figures(browser, address):
    with Visit(browser, address) as visit:
        visit.page.keyboard.press("Tab")
        assert visit.page.locator(".skip").bounding_box()["x"] >= 0
        visit.page.keyboard.press("Enter")
        assert visit.page.url.endswith("#figures")
