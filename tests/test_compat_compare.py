"""The comparison behind ``python -m compat``: what counts as a regression, and what does not.

No upstream suite runs here; the last tests run two tiny unittest modules through the real child-side code.
"""

from __future__ import annotations

import ast
import sys
import unittest
from pathlib import Path

import pytest

# compat is not installed with the package; at the end of the path, so that an installed fastpickle goes first
sys.path.append(str(Path(__file__).resolve().parent.parent))

from compat import __main__ as command
from compat._compare import FLAKY, REGRESSION, compare, settle
from compat._record import FAILED, PASSED, SKIPPED, Outcome, Recorder, read
from compat._scripts import Wrap
from compat.cpython.child import RecordingResult


def outcomes(**status: str) -> dict[str, Outcome]:
    """Give outcomes by test name."""
    return {test: Outcome(value) for test, value in status.items()}


@pytest.mark.parametrize(
    ("stock", "accelerated", "where"),
    [
        (PASSED, PASSED, "good"),
        (PASSED, FAILED, "regressions"),
        (PASSED, SKIPPED, "regressions"),
        (PASSED, None, "regressions"),
        (FAILED, FAILED, "both"),
        (FAILED, SKIPPED, "both"),
        (FAILED, None, "both"),
        (FAILED, PASSED, None),
        (SKIPPED, FAILED, None),
        (SKIPPED, PASSED, None),
        (SKIPPED, None, None),
    ],
)
def test_each_pair_of_outcomes_has_one_place(stock: str, accelerated: str | None, where: str | None) -> None:
    """A test is in the list that the table of ``_compare`` says, and in no other."""
    comparison = compare(outcomes(t=stock), outcomes(t=accelerated) if accelerated else {})
    found = [name for name in ("good", "regressions", "both", "deselected", "needless") if getattr(comparison, name)]
    assert found == ([where] if where else [])


def test_deselected_test_is_no_regression_but_counts_as_passing_on_stock() -> None:
    """A row of the table excuses the test that it names, and no other."""
    comparison = compare(outcomes(a=PASSED, b=PASSED), outcomes(a=FAILED, b=FAILED), {"a": False})
    assert comparison.deselected == ("a",)
    assert comparison.regressions == ("b",)
    assert comparison.passed_stock == 2


def test_deselection_that_is_not_needed_is_reported() -> None:
    """A row whose test passes accelerated is named, so that it can be removed, unless the test is known as flaky."""
    comparison = compare(outcomes(a=PASSED, b=PASSED), outcomes(a=PASSED, b=PASSED), {"a": False, "b": True})
    assert comparison.needless == ("a",)
    assert comparison.good == ("a", "b")


def test_order_is_that_of_stock() -> None:
    """The lists follow the order in which stock ran the tests."""
    stock = outcomes(c=PASSED, a=PASSED, b=PASSED)
    assert compare(stock, {}).regressions == ("c", "a", "b")


@pytest.mark.parametrize(
    ("stock", "accelerated", "verdict"),
    [
        (PASSED, PASSED, FLAKY),
        (FAILED, PASSED, FLAKY),
        (PASSED, FAILED, REGRESSION),
        (PASSED, None, REGRESSION),
        (FAILED, FAILED, REGRESSION),
        (None, None, REGRESSION),
    ],
)
def test_only_passing_accelerated_settles_a_seeming_regression(
    stock: str | None, accelerated: str | None, verdict: str
) -> None:
    """The second run excuses a test only if it passes accelerated; failing on both sides proves nothing."""
    again = [Outcome(status) if status else None for status in (stock, accelerated)]
    assert settle(*again)[0] == verdict


def test_worst_outcome_of_a_test_counts_and_a_cut_line_does_not(tmp_path: Path) -> None:
    """A test recorded in several phases has the worst outcome; what a crash cut short is left out."""
    path = tmp_path / "outcomes.jsonl"
    recorder = Recorder(path)
    recorder.record("a", PASSED)
    recorder.record("a", FAILED, "teardown")
    recorder.record("a", PASSED)
    recorder.record("b", PASSED)
    with path.open("a", encoding="utf-8") as file:
        file.write('{"test": "c", "sta')
    assert read(path) == {"a": Outcome(FAILED, "teardown"), "b": Outcome(PASSED)}


def test_missing_outcome_file_means_no_outcomes(tmp_path: Path) -> None:
    """A child that died before its first test has no outcomes."""
    assert read(tmp_path / "none") == {}


class Sample(unittest.TestCase):
    """Tests in every way of ending; pytest does not collect them, because they have no ``test`` in their names."""

    def good(self) -> None:
        """Pass."""

    def bad(self) -> None:
        """Fail."""
        self.fail("bad")

    def bad_subtest(self) -> None:
        """Fail in a subtest only."""
        for number in range(3):
            with self.subTest(number=number):
                self.assertNotEqual(number, 1)

    def skipped_subtest(self) -> None:
        """Skip a subtest only."""
        with self.subTest():
            self.skipTest("not here")

    def skipped(self) -> None:
        """Skip."""
        self.skipTest("not here")

    @unittest.expectedFailure
    def expected(self) -> None:
        """Fail as expected."""
        self.fail("expected")


def test_unittest_outcomes_are_recorded(tmp_path: Path) -> None:
    """A failing subtest fails its test, a skipped subtest does not, and an expected failure does not count."""
    names = ("good", "bad", "bad_subtest", "skipped_subtest", "skipped", "expected")
    result = RecordingResult(Recorder(tmp_path / "outcomes.jsonl"))
    unittest.TestSuite(Sample(name) for name in names).run(result)
    found = {test.rpartition(".")[2]: outcome.status for test, outcome in read(tmp_path / "outcomes.jsonl").items()}
    assert found == {
        "good": PASSED,
        "bad": FAILED,
        "bad_subtest": FAILED,
        "skipped_subtest": PASSED,
        "skipped": SKIPPED,
        "expected": SKIPPED,
    }


SCRIPT = """\
if __name__ == '__main__':
    prepare()
    test_a()
    stream = test_b(1)
    with quiet():
        test_a()
"""


def test_calls_of_tests_are_wrapped_and_numbered() -> None:
    """Each call of a test is wrapped under an id of its own, also inside other statements."""
    wrapped = ast.unparse(Wrap("f.py", frozenset()).visit(ast.parse(SCRIPT).body[0]))
    ids = [line.strip() for line in wrapped.splitlines() if "_compat_test" in line]
    assert ids == [
        "with _compat_test('f.py::test_a()'):",
        "with _compat_test('f.py::test_b(1)'):",
        "with _compat_test('f.py::test_a()#2'):",
    ]


def test_calls_not_asked_for_are_left_out() -> None:
    """Only the wanted call runs, with the statements around it and those whose result is kept."""
    tree = ast.parse(SCRIPT).body[0]
    wrapped = ast.unparse(Wrap("f.py", frozenset({"f.py::test_a()#2"})).visit(tree))
    assert wrapped.count("test_a()") == 2  # the id and the call
    assert "prepare()" in wrapped
    assert "stream = test_b(1)" in wrapped


@pytest.mark.parametrize("arguments", [["nosuch"], ["dill", "--jobs", "0"], ["dill", "--jobs", "two"], []])
def test_wrong_usage_is_one_line_and_status_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """Wrong usage is answered by one line on stderr."""
    with pytest.raises(SystemExit) as caught:
        command.main(arguments)
    assert caught.value.code == 2
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.parametrize(("extra", "status"), [([], 2), (["--skip-missing"], 0)])
def test_missing_input_is_one_line(
    extra: list[str], status: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A suite that lacks something exits 2, or 0 with a line that says so where that is asked for."""
    assert command.main(["dill", "--source", str(tmp_path), *extra]) == status
    captured = capsys.readouterr()
    if extra:
        assert captured.out.startswith("skipped: ")
        assert captured.out.endswith("\n0 passed, 0 failed\n")
    else:
        assert captured.err.count("\n") == 1
