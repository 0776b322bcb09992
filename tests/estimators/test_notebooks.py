"""What notebooks show of estimators."""

from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
from sklearn import config_context
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from isbor import GPOR, ISBOR, ISVOR, KDLOR, SBOR, SVOR
from isbor.estimators.description import Description
from isbor.estimators.panel import panel

HOSTILE = ["<script>alert(1)</script>", "</style><img src=x onerror=alert(1)>", "a \"b\" & 'c'"]
SYSTEMS = [ISBOR(gamma=0.3), SBOR(gamma=0.3), SVOR(), ISVOR(), GPOR(gamma=0.3), KDLOR()]
VOID = {"br", "img", "input", "meta"}


class Page(HTMLParser):
    """Reads a page as a browser does: elements, whether they are closed, and text outside styles."""

    def __init__(self, html):
        super().__init__()
        self.tags, self.attributes, self.text, self.open = [], [], [], []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if "style" not in self.open and "script" not in self.open:
            self.text.append(data.strip())


def three_classes(few):
    X, y = few
    return X, np.minimum(y, 2)


@pytest.mark.parametrize("model", SYSTEMS, ids=lambda model: type(model).__name__)
def test_a_fitted_model_shows_what_it_is_like(model, few):
    X, codes = three_classes(few)
    labels = ["poor", "fair", "good"]
    model.set_params(classes=labels, n_jobs=1).fit(X, np.array(labels)[codes])
    page = Page(panel(Description.of(model)))
    text = " ".join(filter(None, page.text))
    assert page.open == []
    assert text.startswith(f"{type(model).__name__} , fitted: 3 classes from poor to good")
    assert f"Training rows {len(X)}" in text
    shown = [f"{threshold:.2f}".replace("-", "\N{MINUS SIGN}") for threshold in model.thresholds_]
    assert text.index(shown[0]) < text.index("fair") < text.index(shown[1]) < text.index("good", 50)
    for share in getattr(model, "feature_relevance_", ()):
        assert f"{share:.1%}" in text
    if hasattr(model, "stop_reason_"):
        assert str(model.stop_reason_) in text


def test_unfitted_it_is_what_scikit_learn_shows():
    html = ISBOR()._repr_html_()
    assert "isbor-model" not in html
    assert "ISBOR" in html
    with config_context(display="text"):
        assert not hasattr(ISBOR(), "_repr_html_")
        assert "text/html" not in ISBOR()._repr_mimebundle_()


@pytest.fixture(scope="module")
def hostile(few):
    X, codes = three_classes(few)
    frame = pd.DataFrame(X, columns=HOSTILE[:2])
    return ISBOR(gamma=0.3, classes=HOSTILE, n_jobs=1).fit(frame, np.array(HOSTILE)[codes])


def test_names_are_text_whatever_they_hold(hostile):
    page = Page(panel(Description.of(hostile)))
    assert page.open == []
    assert not {"script", "img"} & set(page.tags)
    assert not [name for name, _ in page.attributes if name.startswith("on")]
    for name in HOSTILE:
        assert page.text.count(name) >= 2  # on the axis and in the table
        assert ("title", name) in page.attributes
    assert set(HOSTILE[:2]) <= set(page.text[page.text.index("Features that matter, with their shares") :])


def test_the_panel_stands_above_the_diagram_in_both_formats(hostile):
    html = hostile._repr_html_()
    assert html.startswith('<div class="isbor-model">')
    assert "sk-container" in html
    bundle = hostile._repr_mimebundle_()
    assert bundle["text/html"].startswith('<div class="isbor-model">')
    assert bundle["text/plain"] == repr(hostile)


def test_diagrams_of_pipelines_and_searches_stay_those_of_scikit_learn(few):
    model = make_pipeline(StandardScaler(), ISBOR(gamma=0.3, n_jobs=1)).fit(*few)
    search = GridSearchCV(ISBOR(n_jobs=1), {"gamma": [0.3, 1.0]}, cv=2).fit(*few)
    for whole in (model, search):
        html = whole._repr_html_()
        assert "isbor-model" not in html
        assert "ISBOR" in html


def test_a_stream_of_one_class_and_close_thresholds_can_be_shown():
    model = ISBOR(classes=[0, 1, 2]).partial_fit(np.arange(6.0).reshape(3, 2), [1, 1, 1])
    text = " ".join(Page(panel(Description.of(model))).text)
    assert "The score is constant: no feature matters." in text
    assert "0 basis functions" in text
    model.thresholds_ = np.array([0.12341, 0.12345])
    assert "0.12341" in panel(Description.of(model))


def test_a_subclass_with_parameters_of_its_own_can_be_shown(few):
    class Named(ISBOR):
        def __init__(self, title, *, gamma=0.3):
            super().__init__(gamma=gamma)
            self.title = title

    model = Named("my model").fit(*few)
    assert Description.of(model).parameters == {"title": "my model"}
    assert "Named</strong>, fitted" in model._repr_html_()
