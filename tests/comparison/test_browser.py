"""The page of a comparison in a real browser: it sorts, asks the network for nothing, and fits a phone."""

from __future__ import annotations

import json
import shutil

import pytest

from tests.comparison.conftest import QUICK

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
DRIVER = shutil.which("chromedriver")
FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --disable-dev-shm-usage"
)
PHONE, DESK = 390, 1280

pytestmark = pytest.mark.skipif(
    BROWSER is None or DRIVER is None, reason="needs Chromium: apt-get install chromium chromium-driver"
)


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = BROWSER
    for flag in [*FLAGS.split(), f"--user-data-dir={tmp_path_factory.mktemp('profile')}"]:
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"performance": "ALL", "browser": "ALL"})
    driver = webdriver.Chrome(options, webdriver.ChromeService(DRIVER))
    yield driver
    driver.quit()


@pytest.fixture
def url(report):
    return report.as_uri()


def at_width(browser, url, width, *, dark=False):
    browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": width == PHONE},
    )
    scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})
    browser.get(url)


def head(browser, name):
    (found,) = browser.find_elements("xpath", f"(//table)[1]//th[button[normalize-space()='{name}']]")
    return found


def click(browser, name):
    head(browser, name).find_element("tag name", "button").click()


def order(browser):
    return [cell.text for cell in browser.find_elements("xpath", "(//table)[1]/tbody/tr/th")]


@pytest.mark.slow
def test_click_sorts_better_first_and_then_the_other_way(browser, url):
    at_width(browser, url, DESK)
    dummy, good, tree = QUICK[:3]
    assert order(browser) == [dummy, good, tree]
    click(browser, "AUC")  # more is better
    first = order(browser)
    assert first[-1] == dummy
    assert head(browser, "AUC").get_attribute("aria-sort") == "descending"
    click(browser, "log-loss")  # less is better
    assert head(browser, "log-loss").get_attribute("aria-sort") == "ascending"
    assert head(browser, "AUC").get_attribute("aria-sort") == "none"
    once = order(browser)
    click(browser, "log-loss")
    assert order(browser) == once[::-1]
    click(browser, "model")
    assert order(browser) == sorted(order(browser))
    (status, _) = browser.find_elements("css selector", "[role=status]")
    assert status.text == "Sorted by model, ascending."


def test_headings_sort_by_keyboard(browser, url):
    at_width(browser, url, DESK)
    head(browser, "fit s").find_element("tag name", "button").send_keys("\n")
    assert head(browser, "fit s").get_attribute("aria-sort") == "ascending"


@pytest.mark.parametrize("width", [PHONE, DESK])
def test_page_does_not_scroll_sideways(browser, url, width):
    at_width(browser, url, width)
    inner, page = browser.execute_script("return [innerWidth, document.documentElement.scrollWidth]")
    assert inner == width
    assert page <= width
    # Whatever is wider than the page is inside a box that scrolls by itself.
    outside = browser.execute_script(
        "return [...document.querySelectorAll('body *')].filter(e => !e.closest('.scroll > *')"
        " && e.getBoundingClientRect().right > innerWidth + 0.5).map(e => e.outerHTML.slice(0, 80))"
    )
    assert outside == []


def test_phone_shows_the_first_scores_and_keeps_names_in_sight(browser, url):
    at_width(browser, url, PHONE)
    box = browser.find_element("css selector", ".scroll")
    assert head(browser, "AUC").rect["x"] < 200
    browser.execute_script("arguments[0].scrollLeft = 400", box)
    name = browser.find_element("xpath", "(//table)[1]/tbody/tr[1]/th")
    assert abs(name.rect["x"] - box.rect["x"]) < 3
    # A finger needs 44 pixels.
    assert all(button.rect["height"] >= 44 for button in browser.find_elements("css selector", "thead button"))


def test_pictures_are_drawn_and_inverted_in_the_dark(browser, url):
    papers = []
    for dark in (False, True):
        at_width(browser, url, DESK, dark=dark)
        drawn = "return [...document.images].map(i => [i.complete && i.naturalWidth > 0, getComputedStyle(i).filter])"
        pictures = browser.execute_script(drawn)
        assert all(complete for complete, _ in pictures)
        assert all(("invert" in shown) is dark for _, shown in pictures)
        papers.append(browser.execute_script("return getComputedStyle(document.body).backgroundColor"))
    assert papers[0] != papers[1]


def test_page_asks_the_network_for_nothing_and_the_console_is_clean(browser, url):
    browser.get_log("performance")
    browser.get_log("browser")
    at_width(browser, url, DESK)
    click(browser, "fit s")
    events = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    asked = [e["params"]["request"]["url"] for e in events if e["method"] == "Network.requestWillBeSent"]
    assert asked.count(url) == 1
    assert all(each == url or each.startswith("data:") for each in asked)
    assert browser.get_log("browser") == []
