"""The frame of the heavy suites: the budget, the verdict and the result file."""

from __future__ import annotations

import json

import pytest

from verify.__main__ import suites
from verify.common import Suite, budget


def test_the_budget_scales_counts(monkeypatch):
    monkeypatch.setenv("CROSSTOK_BUDGET", "0.01")
    suite = Suite("thing", [])
    assert suite.scaled(100_000) == 1000
    assert suite.scaled(10) == 1
    assert suite.scaled(10, least=5) == 5


def test_the_budget_is_full_unless_said(monkeypatch):
    monkeypatch.delenv("CROSSTOK_BUDGET", raising=False)
    assert budget() == 1


@pytest.mark.parametrize("written", ["", "much", "0", "-1", "nan", "inf"])
def test_a_senseless_budget_is_refused(monkeypatch, written):
    monkeypatch.setenv("CROSSTOK_BUDGET", written)
    with pytest.raises(SystemExit, match="expected a number above 0 in CROSSTOK_BUDGET"):
        budget()


def test_a_clean_suite_passes_and_writes_its_result(tmp_path, capsys):
    file = tmp_path / "results" / "thing.json"
    suite = Suite("thing", ["--out", str(file)])
    suite.count("strings", 12_345)
    suite.violations("differences", 0)
    suite.require("the sky is up", True)
    assert suite.finish() == 0
    assert "thing: strings: 12,345" in capsys.readouterr().out
    result = json.loads(file.read_text("utf-8"))
    assert result["figures"] == {"strings": 12_345}
    assert result["violations"] == {"differences": 0, "failures of: the sky is up": 0}
    assert {"commit", "hardware", "versions", "command", "seconds", "date"} <= set(result)
    assert [entry.name for entry in file.parent.iterdir()] == ["thing.json"]


def test_a_violation_fails_the_suite():
    suite = Suite("thing", [])
    suite.violations("differences", 2)
    assert suite.finish() == 1


def test_a_failed_condition_fails_the_suite():
    suite = Suite("thing", [])
    suite.require("the sky is down", False)
    assert suite.finish() == 1


def test_a_suite_that_checks_nothing_fails():
    assert Suite("thing", []).finish() == 1


def test_the_driver_finds_the_suites():
    found = suites()
    assert "wheel" in found
    assert not {"common", "__main__", "__init__"} & set(found)
