"""Killed before and after every outgoing call of a drain: it ends all the same, once, inside its deadline."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from tests.fakes import Crash
from tests.functional.interruption.scene import Scene, T, pod


@dataclass
class Story:
    """A Spot notice, then the hook's; three students, one of them slow, one behind a budget for a while."""

    scene: Scene

    @classmethod
    def begin(cls) -> Story:
        scene = Scene(nodes=2, pods=3)
        scene.cluster.add_pod(pod("other", 2))
        scene.cluster.budget_blocked.add("u-nb-1-2")
        scene.spot("i-01")
        return cls(scene)

    def play(self) -> None:
        """Runs as SQS would: an invocation that is killed acknowledges nothing."""
        scene = self.scene
        hooked = False
        for _ in range(400):
            at = scene.queue.next_at
            if at is None and hooked:
                return
            if not hooked and (at is None or at > T + 8):
                scene.now = max(scene.now, T + 8)
                scene.autoscaling.active_actions.add(("notebook-a", "firstbell-drain", "i-01"))
                scene.hook_notice("i-01")
                hooked = True
                continue
            assert at is not None
            scene.now = max(scene.now, at)
            if scene.now > T + 30:
                scene.cluster.budget_blocked.clear()
            try:
                scene.invoke()
            except Crash:
                continue
        raise AssertionError("it goes round for ever")


def calls_of_an_undisturbed_story() -> int:
    story = Story.begin()
    story.play()
    return len(story.scene.faults.calls)


@pytest.mark.parametrize("after_effect", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("nth", range(1, calls_of_an_undisturbed_story() + 1))
def test_a_drain_that_is_killed_at_any_call_ends_as_if_it_had_not_been(nth: int, after_effect: bool) -> None:
    story = Story.begin()
    scene = story.scene
    scene.faults.fail("*", Crash(), nth=nth, after_effect=after_effect)
    story.play()
    assert scene.faults.raised, "the kill did happen"
    own = [name for name in scene.pods_left() if name.startswith("nb-1")]
    assert own == []
    assert "other" in scene.pods_left(), "nobody else's pod is touched"
    assert len(scene.autoscaling.completed) == 1, "exactly one accepted completion"
    assert scene.queue.messages == []
    assert scene.queue.buried == []
    assert scene.settled_at <= T + 121
    assert len({event["outcome_id"] for event in scene.said("Node Draining")}) == 1
    touched = {str(call[1]) for call in scene.calls("evict", "delete_pod")}
    assert touched == {"u-nb-1-1", "u-nb-1-2", "u-nb-1-3"}


@pytest.mark.parametrize("second", range(1, 40, 3))
def test_killed_twice_is_no_worse(second: int) -> None:
    story = Story.begin()
    scene = story.scene
    scene.faults.fail("*", Crash(), nth=7, after_effect=True)
    scene.faults.fail("*", Crash(), nth=7 + second)
    story.play()
    assert [name for name in scene.pods_left() if name.startswith("nb-1")] == []
    assert len(scene.autoscaling.completed) == 1
    assert scene.queue.messages == []
