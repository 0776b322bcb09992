"""What users see of a fit with `verbose`: on a terminal, in a file, and with nothing to write to."""

import os
import re
import subprocess
import sys
import threading

import pytest

from isbor import Step
from isbor.estimators.progress import Progress

# The fit waits in each of its stages, so that there is time to see them.
FIT = """
import sys, time
from isbor import ISBOR, SBOR
from tests.problems import noisy_rows

X, y = noisy_rows(80, seed=3)
seen = []

def wait(step):
    if step.kind == "mode" and step.stage not in {step.stage for step in seen if step.kind == "mode"}:
        time.sleep(SECONDS)
    seen.append(step)

SECONDS = 0.6
"""
SUMMARY = r"fitted in (\d+\.\d) s: [a-z +]+, (\d+) functions, log evidence (-\d+\.\d)"
STATE = (
    r"\[ISBOR\] \d+\.\d s, (comparing families|choosing the width|fitting): "
    r"\d+ rows, \d+ functions, log evidence -\d+\.\d"
)


def run(code):
    """Run code whose standard error is no terminal; return what it wrote to standard output and error."""
    done = subprocess.run([sys.executable, "-c", FIT + code], capture_output=True, text=True, timeout=120)
    return done.stdout, done.stderr


def run_in_terminal(code, columns=100):
    """Run code whose standard error is a terminal; return what it wrote to standard output and error."""
    if sys.platform == "win32":
        pytest.skip("Windows has no pseudo-terminals of this kind")
    import fcntl
    import struct
    import termios

    screen, terminal = os.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    arguments = [sys.executable, "-c", FIT + code]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=terminal, text=True) as process:
        os.close(terminal)
        written = b""
        try:
            while block := os.read(screen, 4096):
                written += block
        except OSError:  # how Linux says that the other end is closed
            pass
        printed = process.stdout.read()
    os.close(screen)
    return printed, written.decode()


def on_screen(written):
    """Return the lines that a terminal shows in the end: characters replace what was in their place."""
    lines = []
    for line in written.split("\n"):
        shown = ""
        for part in line.split("\r"):
            shown = part + shown[len(part) :]
        lines.append(shown.rstrip())
    return lines[:-1] if lines[-1] == "" else lines


def states(written):
    """Return the successive contents of the line that is written over."""
    return [part.rstrip() for part in re.split(r"[\r\n]+", written) if part]


def test_in_a_terminal_one_line_is_kept_up_to_date_and_ends_as_a_summary():
    printed, written = run_in_terminal(
        "model = ISBOR(verbose=1, callback=wait).fit(X, y)\n"
        "print(model.basis_, model.n_relevance_, f'{model.log_evidence_:.1f}', sep='; ')"
    )
    basis, size, evidence = printed.strip().split("; ")
    [line] = on_screen(written)
    assert re.fullmatch(rf"\[ISBOR\] {SUMMARY}", line)
    assert line.endswith(f" s: {basis}, {size} functions, log evidence {evidence}")
    *before, last = states(written)
    assert last == line
    found = [re.fullmatch(STATE, state) for state in before]
    assert None not in found
    doing = [match[1] for match in found]
    assert doing == sorted(doing, key=["comparing families", "choosing the width", "fitting"].index)
    assert {"comparing families", "fitting"} <= set(doing)


def test_a_line_is_cut_to_the_width_of_the_terminal():
    _, written = run_in_terminal("ISBOR(gamma=0.1, verbose=1, callback=wait).fit(X, y)", columns=40)
    *before, last = states(written)
    assert before
    assert {len(state) for state in before} == {39}
    assert all(state.startswith("[ISBOR] ") and state.endswith("...") for state in before)
    assert re.fullmatch(rf"\[ISBOR\] {SUMMARY}", last)


def test_in_a_file_there_is_a_line_every_second_and_a_summary():
    printed, written = run(
        "SECONDS = 2.5\nmodel = ISBOR(gamma=0.1, verbose=1, callback=wait).fit(X, y)\n"
        "print(model.n_relevance_, f'{model.log_evidence_:.1f}')"
    )
    *lines, last = written.splitlines()
    summary = re.fullmatch(rf"\[ISBOR\] {SUMMARY}", last)
    assert f"{summary[2]} {summary[3]}\n" == printed
    assert 2 <= len(lines) <= float(summary[1])
    assert all(re.fullmatch(STATE, line) for line in lines)


def test_a_short_fit_is_summarised_only():
    _, written = run("SBOR(gamma=0.1, verbose=True).fit(X, y)")
    assert re.fullmatch(rf"\[SBOR\] {SUMMARY}\n", written)


def test_two_is_a_line_for_each_step():
    printed, written = run(
        "ISBOR(gamma=0.1, verbose=2, callback=seen.append).fit(X, y)\nprint(*seen, sep='\\n')"
    )
    *lines, last = written.splitlines()
    assert lines == [f"[ISBOR] {step}" for step in printed.splitlines()]
    assert re.fullmatch(rf"\[ISBOR\] {SUMMARY}", last)


def test_a_warning_comes_after_the_summary():
    _, written = run_in_terminal("ISBOR(gamma=0.1, max_iter=1, verbose=1, callback=wait).fit(X, y)")
    first, second, *_ = on_screen(written)
    assert re.fullmatch(rf"\[ISBOR\] {SUMMARY}", first)
    assert "ConvergenceWarning: The limit on passes" in second


def test_an_error_begins_on_a_line_of_its_own():
    fail = "def fail(step):\n    if step.kind == 'mode':\n        wait(step)\n        sys.exit('enough')\n"
    _, written = run_in_terminal(f"{fail}ISBOR(gamma=0.1, verbose=1, callback=fail).fit(X, y)")
    line, error = on_screen(written)
    assert re.fullmatch(STATE, line)
    assert error == "enough"


@pytest.mark.parametrize(
    "loss",
    [
        "sys.stderr.close()",
        "import os; os.close(2)",
        "import os; r, w = os.pipe(); os.dup2(w, 2); os.close(w); os.close(r)",  # a pipe that nobody reads
        "sys.stderr = None",  # as in a program without a console
        "sys.stderr = object()",
    ],
)
def test_a_fit_needs_no_standard_error(loss):
    fits = (
        "for verbose in (1, 2): print(ISBOR(gamma=0.1, verbose=verbose, callback=wait).fit(X, y).n_iter_ > 0)"
    )
    assert run(f"SECONDS = 1.1\n{loss}\n{fits}")[0] == "True\nTrue\n"


def test_steps_come_from_any_thread(capfd):
    seen = []
    steps = [Step("mode", -1, 0.0, -1.0 * k, k, 0.0, 0.0, k, 10, "fit", 1) for k in range(2000)]
    with Progress("ISBOR", every_step=True, callback=seen.append) as progress:
        threads = [threading.Thread(target=lambda k=k: [*map(progress, steps[k::4])]) for k in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        progress.summary = "done"
    key = lambda step: step.n_active
    assert sorted(seen, key=key) == steps
    lines = capfd.readouterr().err.splitlines()
    assert sorted(lines[:-1]) == sorted(f"[ISBOR] {step}" for step in steps)
    assert re.fullmatch(r"\[ISBOR\] fitted in \d\.\d s: done", lines[-1])
