"""`firstbell signal` and `cancel`: an operator speaks as a portal does, to the real prescale over fakes."""

from __future__ import annotations

from dataclasses import replace

from firstbell.outcomes import rfc3339
from firstbell.settings import Portal
from tests.fakes.school import PLACES, School, pool
from tests.functional.cli.desk import SOURCE, Desk


def test_a_signal_is_put_as_the_only_portal_and_raises_the_pool() -> None:
    desk = Desk()
    sent = desk.json("signal", "--pods", str(2 * PLACES), "--reference", "bio101")
    assert (sent["reference"], sent["sent"], sent["source"]) == ("bio101", True, SOURCE)
    assert sent["detail"] == {"region": "us-west-2", "pods": 14, "reference": "bio101"}
    assert desk.school.desired() == 2


def test_everything_that_a_signal_may_say_can_be_said() -> None:
    desk = Desk(School(pools=(pool(), pool("other"))))
    starts, ends = rfc3339(desk.school.now + 60), rfc3339(desk.school.now + 7200)
    said = {"pods": 3, "reference": "r", "pool": "other", "cpu": "200m", "memory": "1Gi", "gpu": 0, "revision": 4}
    options = [part for name, value in said.items() for part in (f"--{name}", str(value))]
    sent = desk.json("signal", *options, "--starts-at", starts, "--ends-at", ends)
    assert sent["detail"] == {
        "region": "us-west-2",
        "pods": 3,
        "reference": "r",
        "pool": "other",
        "pod": {"cpu": "200m", "memory": "1Gi", "gpu": 0},
        "starts_at": starts,
        "ends_at": ends,
        "revision": 4,
    }
    assert desk.school.ledger.reservations["r"].pod.cpu_millicores == 200


def test_a_signal_without_a_reference_gets_one_that_can_be_cancelled() -> None:
    desk = Desk()
    reference = desk.json("signal", "--pods", "3")["reference"]
    assert desk.json("cancel", reference)["sent"]
    assert desk.school.ledger.reservations[reference].cancelled_at


def test_what_is_wrong_is_named_and_nothing_is_sent() -> None:
    desk = Desk()
    refused = desk.json("signal", "--pods", "0", "--starts-at", "tomorrow", "--reference", "-", code=3)
    assert {p["field"] for p in refused["problems"]} == {"pods", "starts_at", "reference"}
    assert not refused["sent"]
    words = desk.run("signal", "--pods", "3", "--pool", "gpu", "--cpu", "many")
    assert words.exit_code == 3
    assert "pool is 'gpu'; allowed: notebook" in words.stdout
    assert "pod.cpu" in words.stdout
    assert "put" not in desk.calls()


def test_credentials_of_an_account_that_no_portal_has_are_refused_before_anything_is_sent() -> None:
    desk = Desk()
    desk.sender.account = "999999999999"
    refused = desk.json("signal", "--pods", "3", code=3)
    (problem,) = refused["problems"]
    assert problem["field"] == "source"
    assert "account 999999999999" in problem["problem"]
    assert "put" not in desk.calls()


def test_the_source_has_to_be_said_where_several_portals_are_listed() -> None:
    desk = Desk()
    portals = desk.school.settings.portals
    second = Portal("second", "111122223333", "edu.second", max_pods=10, max_reserved_hours=2)
    desk.school.settings = replace(desk.school.settings, portals=(*portals, second))
    missing = desk.run("signal", "--pods", "3")
    assert missing.exit_code == 2
    assert "edu.portal, edu.second" in missing.stderr
    assert desk.json("signal", "--pods", "3", "--source", "edu.second")["source"] == "edu.second"
    assert desk.run("signal", "--pods", "3", "--source", "edu.third").exit_code == 2


def test_a_repeat_is_sent_and_said_to_be_one() -> None:
    desk = Desk()
    desk.run("signal", "--pods", "3", "--reference", "r", "--revision", "1")
    again = desk.json("signal", "--pods", "3", "--reference", "r", "--revision", "1")
    assert again["repeated"]
    assert desk.school.desired() == 1


def test_wait_ends_with_capacity_ready_when_nodes_cover_the_class() -> None:
    desk = Desk()

    def a_minute() -> None:
        desk.school.grow()
        desk.school.tick()

    desk.meanwhile = a_minute
    ready = desk.json("signal", "--pods", str(PLACES), "--reference", "r", "--wait")
    assert ready["answer"] == "ready"
    assert ready["seconds"] > 0


def test_wait_ends_with_4_and_the_remedy_where_capacity_is_short() -> None:
    desk = Desk(School(max_size=1))
    short = desk.run("signal", "--pods", str(2 * PLACES), "--reference", "r", "--wait")
    assert short.exit_code == 4
    assert "Capacity Short after 0 s: max-size. Raise the group's MaxSize" in short.stdout


def test_wait_ends_with_3_and_why_where_the_pod_fits_on_no_node() -> None:
    desk = Desk()
    rejected = desk.run("signal", "--pods", "1", "--memory", "64Gi", "--reference", "r", "--wait")
    assert rejected.exit_code == 3
    assert "rejected after 0 s" in rejected.stdout
    assert "memory" in rejected.stdout


def test_wait_ends_with_5_when_its_time_is_over() -> None:
    desk = Desk()
    waiting = desk.run("signal", "--pods", "3", "--reference", "r", "--wait", "--timeout-seconds", "30")
    assert waiting.exit_code == 5
    assert "no answer yet after 30 s" in waiting.stdout
    desk.sender.deaf = True
    lost = desk.run("signal", "--pods", "3", "--reference", "lost", "--wait", "--timeout-seconds", "30")
    assert lost.exit_code == 5
    assert "nobody has taken the signal" in lost.stdout


def test_wait_says_when_nodes_of_a_later_class_are_asked_for() -> None:
    desk = Desk()
    starts = rfc3339(desk.school.now + 3600)
    later = desk.run("signal", "--pods", "3", "--starts-at", starts, "--wait", "--timeout-seconds", "4")
    assert later.exit_code == 5
    assert "stored; nodes are asked for at" in later.stderr


def test_a_correction_is_followed_and_not_what_it_replaces() -> None:
    desk = Desk()
    desk.run("signal", "--pods", str(PLACES), "--reference", "r", "--revision", "1")
    desk.school.grow()
    desk.school.tick()
    assert desk.school.ledger.reservations["r"].progress.ready_at
    corrected = ["signal", "--pods", str(2 * PLACES), "--reference", "r", "--revision", "2"]
    waiting = desk.json(*corrected, "--wait", "--timeout-seconds", "10", code=5)
    assert waiting["answer"] == "undecided"


def test_a_reference_that_nobody_reserved_is_not_cancelled_but_the_open_ones_are_named() -> None:
    desk = Desk()
    desk.run("signal", "--pods", "3", "--reference", "bio101")
    typo = desk.run("cancel", "bio102")
    assert typo.exit_code == 2
    assert "allowed: bio101" in typo.stderr
    assert [c.args[1] for c in desk.school.faults.calls if c.name == "put"] == ["Demand Signal"]


def test_what_is_over_is_not_cancelled_again() -> None:
    desk = Desk()
    desk.run("signal", "--pods", "3", "--reference", "r")
    assert desk.json("cancel", "r", "--wait")["answer"] == "cancelled"
    assert desk.json("cancel", "r") == {"reference": "r", "sent": False, "why": "cancelled"}
