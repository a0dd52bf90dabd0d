"""The page of a comparison: whole in one file, true to the results, and told in words, too."""

from __future__ import annotations

import base64
import re
from dataclasses import replace
from html.parser import HTMLParser
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from studies import MODELS, study, weighed_at

from boostbp.comparison.contenders import SINGLE_LAYER, deep
from boostbp.comparison.measuring import Job, measure, splits
from boostbp.comparison.page import check_report, write_report
from boostbp.comparison.rendering import Result, over_folds

TINY = {"epochs": 2, "hidden_layer_sizes": (2,), "n_estimators": 3, "deep": True}
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
    assert len(links) > 20
    assert all(link.startswith(("data:", "#")) for link in links)
    assert not re.search(r"@import|url\(", text)
    (policy,) = [meta["content"] for meta in page.all("meta") if "http-equiv" in meta]
    assert policy.startswith("default-src 'none'")


def test_table_says_what_the_results_say(text):
    rows = Page(text).cells
    assert rows[0] == ["model", "accuracy", "log-loss", "fit s", "predict s", "peak MB", "model MB", "kept"]
    assert [row[0] for row in rows[1:5]] == [*MODELS, "GBDT-NN"]
    std = np.std([0.0, 0.01, 0.02], ddof=1)
    assert rows[2][1] == f"0.6100 ± {std:.4f}"
    assert rows[1][2] == "1.9000 ± 0.1000"
    assert rows[1][3:] == ["10.00", "0.0000", "\u2013", "4.50", "9 rounds"]
    assert rows[4][1:] == ["skipped", "skipped", "\u2013", "\u2013", "\u2013", "\u2013", "\u2013"]


def test_pictures_are_told_in_words(text):
    images = Page(text).all("img")
    # folds 2, curves 2, calibration 1 or residuals 3, representation 2, health 6
    assert len(images) == 13 + 15
    for image in images:
        assert image["alt"].endswith(".")
        assert ET.fromstring(base64.b64decode(image["src"].partition("base64,")[2])).tag.endswith("svg")


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
    failed = Result(hostile, "failed", hostile, {})
    written = study()
    made = type(written)(hostile, hostile, [*written.results, failed])
    write_report(tmp_path / "report.html", [made], {hostile: hostile})
    plain = type(written)("name", "facts", [*written.results, Result("model", "failed", "why", {})])
    write_report(tmp_path / "plain.html", [plain], {"name": "value"})
    texts = [(tmp_path / name).read_text(encoding="utf-8") for name in ("report.html", "plain.html")]
    pages = [Page(text) for text in texts]
    assert [tag for tag, _ in pages[0].elements] == [tag for tag, _ in pages[1].elements]
    assert [sorted(attrs) for _, attrs in pages[0].elements] == [sorted(attrs) for _, attrs in pages[1].elements]
    assert sum(hostile in cell for row in pages[0].cells for cell in row) == 1
    assert "49" not in re.findall(r"<title>(.*)</title>", texts[0])[0]


def test_reasons_and_sick_layers_are_told(text):
    assert "GBDT-NN skipped: needs the torch package" in text
    assert "Back-propagation is dead at hidden layer 0" in text


def test_results_without_pictures_make_a_page(tmp_path):
    lone = Result("one", "ran", "", {"r2": 0.5, "rmse": 2.0}, 1.0, 0.1)
    written = study()
    write_report(tmp_path / "report.html", [type(written)("plain", "few rows", [lone])], {})
    page = Page((tmp_path / "report.html").read_text(encoding="utf-8"))
    assert page.cells[1][:3] == ["one", "0.5000", "2.0000"]
    assert not page.all("img")


def test_folds_are_means_with_a_standard_deviation():
    runs = [Result("m", "ran", "", {"r2": v}, s, s, b, n, b) for v, s, b, n in ((0.2, 1.0, 10, 3), (0.4, 2.0, 30, 8))]
    got = over_folds(runs)
    assert got.scores == {"r2": pytest.approx(0.3)}
    assert got.score_text("r2") == f"0.3000 ± {np.std([0.2, 0.4], ddof=1):.4f}"
    assert (got.fit_seconds, got.predict_seconds, got.peak_bytes, got.length) == (1.5, 1.5, 30, 6)
    assert got.model_bytes == 20
    assert runs[0].score_text("r2") == "0.2000"
    broken = over_folds([runs[0], Result("m", "failed", "no luck", {})])
    assert (broken.state, broken.reason, broken.scores) == ("failed", "fold 2: no luck", {})


@pytest.mark.parametrize("task", ["classification", "regression"])
@pytest.mark.parametrize("contender", [deep("lightgbm", TINY), *SINGLE_LAYER[::2]], ids=lambda each: each.label)
def test_evidence_reproduces_the_scores(task, contender):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((90, 3))
    y = X[:, 0] + 0.1 * rng.standard_normal(90)
    if task == "classification":
        y = np.array(["a", "b"])[(y > 0).astype(int)]
    data = next(splits(X, y, task, test_size=0.5, folds=2, seed=0))
    outcome = measure(Job(contender, 1, 0, evidence=True), data)
    e, scores = outcome.evidence, outcome.scores
    if task == "classification":
        assert e.labels == ("a", "b")
        assert scores["accuracy"] == np.mean(e.predicted.argmax(axis=1) == e.observed)
    else:
        assert scores["rmse"] == pytest.approx(np.sqrt(np.mean((e.observed - e.predicted) ** 2)))
    assert e.curve.loss == ("log-loss" if task == "classification" else "RMSE")
    assert e.curve.values[e.curve.kept] == min(e.curve.values)
    if contender.kind == "deep":
        assert set(e.hidden) == {0, e.history.best_epoch}
        assert all(H.shape == (45, 2) for H in e.hidden.values())
    else:
        assert (e.hidden, e.history) == ({}, None)


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
    assert len(keys) > 20
    for key in keys:
        [colour] = re.fullmatch(r"--colour: (#\w{6})", key).groups()
        assert any(colour in svg for svg in svgs)
    assert "boostbp (lightgbm) layer 0, held-out rows" in text
    assert len(page.all("figcaption")) > 10


def test_it_says_what_the_models_are_made_of(tmp_path):
    written = study()
    made = [
        replace(result, evidence=replace(result.evidence, history=weighed_at(result.evidence.history, 0.25)))
        if result.evidence is not None and result.evidence.history is not None
        else result
        for result in written.results
    ]
    write_report(tmp_path / "report.html", [replace(written, results=made)], {})
    text = " ".join((tmp_path / "report.html").read_text(encoding="utf-8").split())
    assert "The model is 75% single layer + 25% network. Hidden layers changed the held-out loss by +0 ± 0.1" in text
