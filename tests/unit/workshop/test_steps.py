"""Set-up does a step once for its inputs, and says what to do when one fails."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from workshop import bootstrap, steps
from workshop.steps import Step, StepFailed


@pytest.fixture(autouse=True)
def stand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(steps, "STAMPS", tmp_path / "stamps")
    monkeypatch.setattr(steps, "ROOT", tmp_path)
    (tmp_path / "stamps").mkdir()
    (tmp_path / "lock").write_text("a==1")
    return tmp_path


def step_making(stand: Path, done: list[str]) -> Step:
    product = stand / "product"

    def act() -> None:
        done.append("acted")
        product.write_text("made")

    return Step(
        name="thing",
        title="a thing",
        act=act,
        inputs=[stand / "lock"],
        product=product.is_file,
        remedy="Turn it off and on.",
    )


def test_a_step_is_done_once_for_the_same_inputs(stand: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []
    monkeypatch.setattr(bootstrap, "steps", lambda: [step_making(stand, done)])

    assert [bootstrap.set_up(quiet=True) for _ in range(2)] == [0, 0]

    assert done == ["acted"]


def test_a_changed_input_or_a_lost_product_does_the_step_again(stand: Path) -> None:
    step = step_making(stand, [])
    steps.perform(step)
    assert step.is_done()

    (stand / "lock").write_text("a==2")
    assert not step.is_done()

    steps.perform(step)
    (stand / "product").unlink()
    assert not step.is_done()


def test_a_failed_step_says_which_why_and_what_to_do(
    stand: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    failing = Step(
        name="thing",
        title="a thing",
        act=lambda: steps.run("thing", [sys.executable, "-c", "raise SystemExit('the disk is full')"]),
        inputs=[],
        product=lambda: True,
        remedy="Make room.",
    )
    monkeypatch.setattr(bootstrap, "steps", lambda: [failing])

    assert bootstrap.set_up(quiet=True) == 1

    said = capsys.readouterr().out
    assert "FAILED: a thing" in said
    assert "the disk is full" in said
    assert "what to do: Make room." in said
    assert not failing.is_done()


def test_a_step_that_makes_nothing_has_failed(stand: Path) -> None:
    step = Step(name="thing", title="a thing", act=lambda: None, inputs=[], product=lambda: False, remedy="")

    with pytest.raises(StepFailed, match="not there"):
        steps.perform(step)


def test_a_program_that_is_missing_is_named() -> None:
    with pytest.raises(StepFailed, match="no-such-program cannot be started"):
        steps.run("thing", ["no-such-program"])


def test_a_slow_step_shows_that_it_is_alive(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(steps, "BEAT_SECONDS", 0.05)
    ending_after_a_beat = "import time; print('compiling', flush=True); time.sleep(0.3)"

    steps.run("thing", [sys.executable, "-c", ending_after_a_beat])

    assert "s  compiling" in capsys.readouterr().out


@pytest.mark.parametrize(("answer", "major"), [("v24.19.0", 24), ("v8.1.0", 8), ("not node", None)])
def test_the_version_of_node_is_what_it_says(tmp_path: Path, answer: str, major: int | None) -> None:
    node = tmp_path / "node"
    node.write_text(f"#!/bin/sh\necho '{answer}'\n")
    node.chmod(0o755)

    assert bootstrap.node_major(node) == major


def test_no_node_is_no_version(tmp_path: Path) -> None:
    assert bootstrap.node_major(tmp_path / "node") is None
