"""The page of a comparison: whole in one file, true to the results, and told in words, too."""

from __future__ import annotations

import base64
import re
from html.parser import HTMLParser
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from sklearn.dummy import DummyRegressor
from studies import compared

from boostbp.comparison.page import check_report, groups, write_report
from tests.comparison.conftest import QUICK

OUTSIDE = {"src", "srcset", "href", "action", "data", "poster"}


class Page(HTMLParser):
    """Elements of a page with their attributes, and the cells of its tables."""

    def __init__(self, text):
        super().__init__()
        self.elements, self.cells, self.inside = [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        self.inside.append(tag)
        if tag == "tr":
            self.cells.append([])
        if tag in ("td", "th"):
            self.cells[-1].append("")

    def handle_endtag(self, tag):
        while self.inside.pop() != tag:
            pass

    def handle_data(self, data):
        if {"td", "th"} & set(self.inside):
            self.cells[-1][-1] += data.strip()

    def all(self, tag):
        return [attrs for name, attrs in self.elements if name == tag]


@pytest.fixture
def text(report):
    assert [entry.name for entry in report.parent.iterdir()] == ["report.html"]
    return report.read_text(encoding="utf-8")


def test_nothing_comes_from_outside(text):
    page = Page(text)
    links = [attrs[name] for _, attrs in page.elements for name in OUTSIDE & set(attrs)]
    assert len(links) > 10
    assert all(link.startswith(("data:", "#")) for link in links)
    assert not re.search(r"@import|url\(", text)
    (policy,) = [meta["content"] for meta in page.all("meta") if "http-equiv" in meta]
    assert policy.startswith("default-src 'none'")


def test_the_verdict_comes_first_and_the_table_says_the_same(text, numbers, labels):
    rows = Page(text).cells
    head = ["model", "AUC", "avg. precision", "log-loss", "Brier", "gain in AUC", "better"]
    assert rows[0] == [*head, "fit s", "row ms", "peak MB", "model MB"]
    assert [row[0] for row in rows[1:4]] == QUICK[:3]
    assert rows[1][1] == f"{labels.scores_of('dummy', 'auc').mean():.4f}"
    assert rows[-1][0:2] == ["broken", "failed"]
    places = [text.index(part) for part in ("good has AUC", "<table", "<img")]
    assert places == sorted(places)
    assert "Class &#39;&lt;sick&gt;&#39; is rare" in text
    assert "broken failed: RuntimeError: no luck &lt;here&gt;" in text


def test_pictures_are_told_in_words(text):
    images = Page(text).all("img")
    # gains and folds of both; calibration; residuals of three models
    assert len(images) == 2 * 2 + 1 + 3
    for image in images:
        assert image["alt"].endswith(".")
        assert ET.fromstring(base64.b64decode(image["src"].partition("base64,")[2])).tag.endswith("svg")
    assert any("Gain over dummy against seconds of a fit: good has AUC" in image["alt"] for image in images)


def test_calibration_names_the_class_and_counts_rows(labels):
    calibration = groups(labels)[-1]
    assert calibration.title == "Calibration"
    assert "of class '<sick>', in 10 groups of 37 rows" in calibration.reading


def test_names_are_text_and_ids_are_unique(text):
    assert "people &amp; &lt;income&gt;.csv" in text
    assert "<income>" not in text
    page = Page(text)
    ids = [attrs["id"] for _, attrs in page.elements if "id" in attrs]
    assert len(ids) == len(set(ids))
    assert {link["href"][1:] for link in page.all("a")} <= set(ids)


@pytest.mark.slow
def test_hostile_names_are_text_wherever_they_stand(tmp_path):
    hostile = """'"></title></style><script>alert(1)</script><img src=x onerror=alert(1)>{{ 7 * 7 }}"""
    X, y = np.arange(40.0)[:, None], np.arange(40.0) % 7

    def written(first, second, name):
        models = [(first, DummyRegressor()), (second, DummyRegressor(strategy="median"))]
        write_report(tmp_path / "page.html", [compared(X, y, models=models, name=name, folds=2, repeats=1)])
        return (tmp_path / "page.html").read_text(encoding="utf-8")

    texts = [written(hostile, f"{hostile}2", hostile), written("one", "two", "table")]
    pages = [Page(text) for text in texts]
    assert [tag for tag, _ in pages[0].elements] == [tag for tag, _ in pages[1].elements]
    assert [sorted(attrs) for _, attrs in pages[0].elements] == [sorted(attrs) for _, attrs in pages[1].elements]
    assert "49" not in re.findall(r"<title>(.*)</title>", texts[0])[0]


def test_missing_packages_and_folders_are_found_before_the_work(tmp_path, without):
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        check_report(tmp_path / "none" / "report.html")
    without("jinja2")
    with pytest.raises(ImportError, match=r"HTML report needs the jinja2 .*pip install 'boostbp\[report\]'"):
        check_report(tmp_path / "report.html")


def test_legends_and_titles_stand_beside_the_pictures_in_their_colours(text):
    page = Page(text)
    svgs = [base64.b64decode(image["src"].partition("base64,")[2]).decode() for image in page.all("img")]
    assert not any('id="legend' in svg for svg in svgs)  # where they would squeeze what is drawn
    keys = [attrs["style"] for attrs in page.all("span") if attrs.get("class", "").startswith("key")]
    assert len(keys) > 8
    for key in keys:
        [colour] = re.fullmatch(r"--colour: (#\w{6})", key).groups()
        assert any(colour in svg for svg in svgs)
