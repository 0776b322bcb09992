import numpy as np
from numpy.testing import assert_allclose, assert_array_equal

from isbor import GPOR, ISBOR, SBOR
from isbor.plots import TraceDisplay
from tests.plots.samples import a_step


def drawn(display, which):
    return np.concatenate([pair[which].get_ydata() for pair in display.lines_])


def test_lines_are_the_steps_of_the_runs(saddle):
    model = ISBOR(basis="rbf").fit(*saddle)
    display = TraceDisplay.from_estimator(model)
    runs = list(dict.fromkeys((step.stage, step.run) for step in model.trace_))
    assert len(display.lines_) == len(runs)
    for pair, run in zip(display.lines_, runs, strict=True):
        steps = [step for step in model.trace_ if (step.stage, step.run) == run and step.kind != "start"]
        evidence, size = (line.get_ydata()[-len(steps) :] for line in pair)
        assert_allclose(evidence, [step.log_evidence for step in steps])
        assert_array_equal(size, [step.n_active for step in steps])
    assert display.size[-1] == model.n_relevance_
    assert [text.get_text() for text in display.stages_][:1] == ["width"]


def test_of_the_steps_that_start_a_run_the_last_is_shown():
    steps = [a_step("start", -9.0, n_active=k) for k in (1, 2, 3)] + [a_step("add", -5.0, n_active=4)]
    display = TraceDisplay(steps=steps).plot()
    assert_array_equal(drawn(display, 1), [3, 4])
    assert_array_equal(drawn(display, 0), [-9.0, -5.0])
    assert display.ax_.get_ylabel() == "log evidence, in nats"


def test_evidence_of_different_numbers_of_rows_is_for_each_row():
    display = TraceDisplay(steps=[a_step("mode", -50.0), a_step("mode", -60.0, n_rows=200)]).plot()
    assert_allclose(drawn(display, 0), [-0.5, -0.3])
    assert display.ax_.get_ylabel() == "log evidence per row, in nats"


def test_steps_that_refit_the_noise_are_marked():
    display = TraceDisplay(steps=[a_step("mode", -9.0), a_step("noise", -5.0), a_step("mode", -4.0)]).plot()
    assert_array_equal(display.noise_.get_xydata(), [[2, -5.0]])


def test_short_and_empty_traces_can_be_drawn(few):
    assert len(TraceDisplay.from_estimator(SBOR(gamma=0.3).fit(*few)).lines_) == 1
    assert TraceDisplay(steps=()).plot().lines_ == []
    assert not hasattr(GPOR, "trace_")
