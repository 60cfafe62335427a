"""A wrong operator's file gets errors that name file, line, path, value and what is allowed."""

from __future__ import annotations

import copy
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from infra.operator_file import OperatorFile, WrongFile, load
from tests.infra import documents

QUIET = {"days": "Mon-Fri", "from": "19:00", "to": "07:00"}


def read(tmp_path: Path, text: str) -> OperatorFile:
    path = tmp_path / "firstbell.yaml"
    path.write_text(text, encoding="utf-8")
    return load(path)


def errors(tmp_path: Path, text: str) -> list[str]:
    """The error's lines without the folder."""
    with pytest.raises(WrongFile) as caught:
        read(tmp_path, text)
    return str(caught.value).replace(f"{tmp_path}/", "").splitlines()


def with_pool(**changes: Any) -> str:
    return documents.text(documents.cluster(pools=[documents.pool(**changes)]))


def with_created(**changes: Any) -> str:
    return documents.text(documents.cluster(pools=[documents.created(**changes)], api_server=documents.API_SERVER))


def with_idle(**changes: Any) -> str:
    return with_pool(idle={"timezone": "Europe/Berlin", "quiet": [QUIET], **changes})


def with_cluster(**changes: Any) -> str:
    return documents.text(documents.cluster(**changes))


CASES: dict[str, tuple[str, str]] = {
    "an unknown key": (
        with_pool(labls={}),
        "clusters[0].pools[0].labls: unknown key; did you mean labels?; allowed: name, asg, nodegroup, create, pod,",
    ),
    "a missing key": (
        documents.text({key: value for key, value in documents.cluster().items() if key != "region"}),
        "clusters[0].region: is missing; allowed: an AWS region, such as us-west-2",
    ),
    "a quantity": (
        with_pool(pod={"cpu": "500m", "memory": "2Gb"}),
        'clusters[0].pools[0].pod.memory: "2Gb" is not allowed; allowed: an amount of bytes, such as 2Gi',
    ),
    "a negative quantity": (
        with_pool(pod={"cpu": -1, "memory": "2Gi"}),
        "clusters[0].pools[0].pod.cpu: -1 is not allowed; allowed: CPUs, such as 500m, 2 or 0.5",
    ),
    "a choice": (
        with_pool(mode="watch"),
        'clusters[0].pools[0].mode: "watch" is not allowed; allowed: one of: act, observe',
    ),
    "a number as text": (
        with_cluster(portals=[documents.portal(max_pods="600")]),
        'clusters[0].portals[0].max_pods: "600" is not allowed; allowed: a whole number from 1 to 100000',
    ),
    "true for a number": (
        with_cluster(portals=[documents.portal(max_pods=True)]),
        "clusters[0].portals[0].max_pods: true is not allowed; allowed: a whole number",
    ),
    "a number out of range": (
        with_cluster(portals=[documents.portal(max_reserved_hours=0)]),
        "clusters[0].portals[0].max_reserved_hours: 0 is not allowed; allowed: a number above 0, at most 336",
    ),
    "a label value that is no text": (
        with_pool(labels={"gpu": True}),
        "clusters[0].pools[0].labels.gpu: true is not allowed; allowed: a Kubernetes label value in quotes",
    ),
    "a label key": (
        with_pool(labels={"hub.jupyter.org/": "x"}),
        "clusters[0].pools[0].labels['hub.jupyter.org/']: 'hub.jupyter.org/' is not allowed as a key; allowed: a Kub",
    ),
    "a list that is none": (with_cluster(pools={}), "clusters[0].pools: {} is not allowed; allowed: a list of at leas"),
    "an empty list": (documents.text(clusters=[]), "clusters: [] is not allowed; allowed: a list of at least 1"),
    "a mapping that is none": (
        with_pool(pod="small"),
        'clusters[0].pools[0].pod: "small" is not allowed; allowed: a mapping with the keys cpu, memory, gpu',
    ),
    "a taint": (
        with_pool(taints=["hub=user"]),
        'clusters[0].pools[0].taints[0]: "hub=user" is not allowed; allowed: <key>[=<value>]:NoSchedule',
    ),
    "an unknown default pool": (
        with_cluster(default_pool="nope"),
        "clusters[0].default_pool: 'nope' is not a pool; allowed: one of users",
    ),
    "a pool name that is taken": (
        with_cluster(pools=[documents.pool(), documents.pool()]),
        "clusters[0].pools[1].name: 'users' is already taken by pools[0]; allowed: another one",
    ),
    "a cluster name that is taken": (
        documents.text(documents.cluster(), documents.cluster(region="eu-west-1")),
        "clusters[1].name: 'hub' is already taken by clusters[0]",
    ),
    "no way to a group": (
        with_pool(asg=None),
        "clusters[0].pools[0]: has none of asg, nodegroup, create; allowed: exactly one of them",
    ),
    "two ways to a group": (
        with_pool(nodegroup="workers"),
        "clusters[0].pools[0]: has asg and nodegroup of asg, nodegroup, create; allowed: exactly one of them",
    ),
    "a stateful pool on Spot": (
        with_pool(stateful=True, spot=True),
        "clusters[0].pools[0].spot: true is not allowed for a stateful pool; allowed: false",
    ),
    "a stateful pool that is made on Spot": (
        with_created(stateful=True, spot=True),
        "clusters[0].pools[0].spot: true is not allowed for a stateful pool; allowed: false",
    ),
    "a fallback to itself": (
        with_pool(fallback=["users"]),
        "clusters[0].pools[0].fallback[0]: 'users' is not another pool; allowed: none",
    ),
    "an unknown fallback": (
        with_cluster(pools=[documents.pool(fallback=["nope"]), documents.pool("other")]),
        "clusters[0].pools[0].fallback[0]: 'nope' is not another pool; allowed: one of other",
    ),
    "fallbacks in a circle": (
        with_cluster(pools=[documents.pool(fallback=["other"]), documents.pool("other", fallback=["users"])]),
        "clusters[0].pools[0].fallback: leads back to 'users'; allowed: fallbacks without a circle",
    ),
    "a negative lead": (
        with_pool(lead_minutes=-1),
        "clusters[0].pools[0].lead_minutes: -1 is not allowed; allowed: minutes from 0 to 1440, or auto",
    ),
    "a lead in words": (
        with_pool(lead_minutes="soon"),
        'clusters[0].pools[0].lead_minutes: "soon" is not allowed; allowed: minutes from 0 to 1440, or auto',
    ),
    "a source of AWS": (
        with_cluster(portals=[documents.portal(source="aws.ec2")]),
        'clusters[0].portals[0].source: "aws.ec2" is not allowed; allowed: an event source such as edu.example.portal',
    ),
    "our own source": (
        with_cluster(portals=[documents.portal(source="firstbell")]),
        'clusters[0].portals[0].source: "firstbell" is not allowed',
    ),
    "the source of drills": (
        with_cluster(portals=[documents.portal(source="firstbell.drill")]),
        'clusters[0].portals[0].source: "firstbell.drill" is not allowed',
    ),
    "an account with a digit missing": (
        with_cluster(portals=[documents.portal(principal=11112222333)]),
        "clusters[0].portals[0].principal: 11112222333 is not allowed; allowed: a 12-digit AWS account, or the ARN",
    ),
    "a user instead of a role": (
        with_cluster(drill_sources=["arn:aws:iam::111122223333:user/ops"]),
        'clusters[0].drill_sources[0]: "arn:aws:iam::111122223333:user/ops" is not allowed; allowed: a 12-digit AWS',
    ),
    "two portals that nobody can tell apart": (
        with_cluster(
            portals=[
                documents.portal(),
                documents.portal(name="b", principal="arn:aws:iam::111122223333:role/b"),
            ]
        ),
        "clusters[0].portals[1]: account 111122223333 already signals as 'edu.example.timetable'; allowed: one portal",
    ),
    "two ways to notify": (
        with_cluster(notify={"email": "a@b.edu", "topic": "arn:aws:sns:us-west-2:111122223333:ops"}),
        "clusters[0].notify: has not exactly one of email, topic; allowed: exactly one of them",
    ),
    "a region that is served elsewhere": (
        documents.text(documents.cluster(), regions={"eu-west-1": "hub", "us-west-2": "hub"}),
        "regions.eu-west-1: 'hub' is not a cluster in eu-west-1; allowed: none",
    ),
    "two clusters in a region and none chosen": (
        documents.text(documents.cluster(), documents.cluster("other")),
        "regions: does not say which cluster us-west-2 is; allowed: us-west-2: one of hub, other",
    ),
    "a pool to make without the cluster's coordinates": (
        with_cluster(pools=[documents.created()]),
        "clusters[0].api_server: is missing; allowed: needed here, because a pool has create",
    ),
    "more at least than at most": (
        with_created(create={"min_size": 30}),
        "clusters[0].pools[0].create.min_size: 30 is above max_size; allowed: at most 20",
    ),
    "an on-demand base of a pool that is on demand": (
        with_created(create={"on_demand_base": 1}),
        "clusters[0].pools[0].create.on_demand_base: is for Spot pools; allowed: 0, or spot: true",
    ),
    "a type twice": (
        with_created(create={"instances": [{"type": "m5.large"}, {"type": "m5.large"}]}),
        "clusters[0].pools[0].create.instances[1].type: 'm5.large' is already taken by instances[0]",
    ),
    "prefixes that nodeadm cannot know of": (
        with_created(networking={"prefix_delegation": True}),
        "clusters[0].pools[0].networking.max_pods: is missing; allowed: a number where create meets prefixes or IPv6",
    ),
    "an unknown time zone (case 58)": (
        with_idle(timezone="Europe/Berln"),
        'clusters[0].pools[0].idle.timezone: "Europe/Berln" is not allowed; allowed: a zone name of the IANA database',
    ),
    "an abbreviation for a time zone": (
        with_idle(timezone="PDT"),
        'clusters[0].pools[0].idle.timezone: "PDT" is not allowed',
    ),
    "a window without length (case 56)": (
        with_idle(quiet=[{**QUIET, "to": "19:00"}]),
        "clusters[0].pools[0].idle.quiet[0].to: '19:00' is also its start; allowed: an end that differs from the start",
    ),
    "a time that no clock shows": (
        with_idle(up=[{**QUIET, "from": "25:00"}]),
        'clusters[0].pools[0].idle.up[0].from: "25:00" is not allowed; allowed: a time of day from 00:00 to 23:59',
    ),
    "a day that no week has": (
        with_idle(quiet=[{**QUIET, "days": "Mon-Fry"}]),
        'clusters[0].pools[0].idle.quiet[0].days: "Mon-Fry" is not allowed; allowed: days such as Mon-Fri',
    ),
    "a date that no calendar has": (
        with_idle(holidays=["2026-02-30"]),
        'clusters[0].pools[0].idle.holidays[0]: "2026-02-30" is not allowed; allowed: a date that exists',
    ),
    "a dated window without length": (
        with_idle(events=[{"date": "2026-06-01", "from": "08:00", "to": "08:00"}]),
        "clusters[0].pools[0].idle.events[0].to: '08:00' is also its start",
    ),
    "an interruption policy": (
        with_pool(interruption={"at_deadline": "kill"}),
        'clusters[0].pools[0].interruption.at_deadline: "kill" is not allowed; allowed: one of: force, leave',
    ),
    "a policy that is no mapping": (
        with_pool(interruption="drain"),
        'clusters[0].pools[0].interruption: "drain" is not allowed; allowed: a mapping with the keys spot, rebalance',
    ),
    "a list at the top": ("- clusters\n", '(top): ["clusters"] is not allowed; allowed: a mapping with the keys clu'),
    "nothing": ("", "(top): nothing is not allowed; allowed: a mapping with the keys clusters, regions"),
}


@pytest.mark.parametrize(("text", "expected"), CASES.values(), ids=CASES)
def test_a_wrong_file_is_refused_in_words(tmp_path: Path, text: str, expected: str) -> None:
    found = errors(tmp_path, text)
    assert any(re.sub(r"^firstbell\.yaml:\d+: ", "", line).startswith(expected) for line in found), found


@pytest.mark.parametrize(("text", "expected"), CASES.values(), ids=CASES)
def test_every_error_names_the_file_and_a_line_of_it(tmp_path: Path, text: str, expected: str) -> None:
    for line in errors(tmp_path, text):
        position = re.match(r"firstbell\.yaml:(\d+): .+; allowed: .+", line)
        assert position, line
        assert 1 <= int(position[1]) <= max(1, text.count("\n"))


def test_all_errors_are_said_at_once_in_the_files_order(tmp_path: Path) -> None:
    text = documents.text(
        documents.cluster(
            default_pool="nope",
            pools=[
                documents.pool(pod={"cpu": "x", "memory": "2Gb"}, fallback=["users"], stateful=True, spot=True),
                documents.pool("b", nodegroup="c", mode="watch"),
            ],
        )
    )
    lines = [int(line.split(":")[1]) for line in errors(tmp_path, text)]
    assert len(lines) == 7
    assert lines == sorted(lines)


def test_a_key_that_stands_twice_is_refused(tmp_path: Path) -> None:
    """A YAML parser would silently keep the last, and a pool would have other taints than the reader sees."""
    assert errors(tmp_path, "clusters: []\nregions: {}\nclusters: []\n") == [
        "firstbell.yaml:3: 'clusters' stands twice; allowed: YAML 1.2"
    ]


def test_a_key_that_is_no_text_is_refused(tmp_path: Path) -> None:
    assert errors(tmp_path, "? [a, b]\n: 1\n") == ["firstbell.yaml:1: a key is not text; allowed: YAML 1.2"]


def test_text_that_is_not_yaml_is_refused_with_its_line(tmp_path: Path) -> None:
    [line] = errors(tmp_path, "clusters:\n  - name: [hub\n")
    assert line.startswith("firstbell.yaml:3: ")


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(WrongFile, match=r"nowhere\.yaml: cannot be read"):
        load(tmp_path / "nowhere.yaml")


def test_times_and_dates_need_no_quotes(tmp_path: Path) -> None:
    """YAML 1.1 would read 19:00 as 1140 minutes and 2026-12-24 as a date."""
    text = with_idle(holidays=["2026-12-24"]).replace("'", "")
    assert "from: 19:00" in text
    idle = read(tmp_path, text).clusters[0].pools[0].idle
    assert idle is not None
    assert (idle.quiet[0].begin, idle.quiet[0].end, idle.holidays) == ("19:00", "07:00", ["2026-12-24"])


def test_accounts_need_no_quotes_and_keep_their_zeros(tmp_path: Path) -> None:
    text = with_cluster(drill_sources=["000000000000", "012345678901", "111122223333"]).replace("'", "")
    assert read(tmp_path, text).clusters[0].drill_sources == ["000000000000", "012345678901", "111122223333"]


def test_no_is_a_word_and_not_false(tmp_path: Path) -> None:
    assert read(tmp_path, with_pool(labels={"spot": "no"}).replace("'no'", "no")).clusters[0].pools[0].labels == {
        "spot": "no"
    }


@pytest.mark.parametrize("days", ["Mon", "Mon-Fri", "Sun-Fri", "Sat,Sun", "Mon-Wed,Fri"])
def test_days_may_be_ranges_lists_and_pass_the_weekend(tmp_path: Path, days: str) -> None:
    """case 56: week-wrap."""
    idle = read(tmp_path, with_idle(quiet=[{**QUIET, "days": days}])).clusters[0].pools[0].idle
    assert idle is not None
    assert idle.quiet[0].days == days


def test_a_window_may_end_at_midnight(tmp_path: Path) -> None:
    """case 56"""
    read(tmp_path, with_idle(quiet=[{**QUIET, "to": "00:00"}]))


def test_the_file_in_the_repository_is_right() -> None:
    root = Path(__file__).resolve().parents[3]
    assert [pool.name for pool in load(root / "firstbell.yaml").clusters[0].pools] == [
        "notebook-m5-xlarge",
        "notebook-m5-2xlarge",
        "dask-worker",
    ]


SMALL = yaml.safe_load(documents.text(documents.cluster(portals=[documents.portal()], notify={"email": "a@b.edu"})))


def paths_of(value: Any, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    inner: list[tuple[str | int, ...]] = []
    if isinstance(value, dict):
        inner = [found for key, entry in value.items() for found in paths_of(entry, (*path, key))]
    elif isinstance(value, list):
        inner = [found for index, entry in enumerate(value) for found in paths_of(entry, (*path, index))]
    return [path, *inner]


@example(path=("clusters", 0), value={"\n": 1, "": 2, "\x85": 3})
@given(
    path=st.sampled_from(paths_of(SMALL)[1:]),
    value=st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=2)
            | st.dictionaries(st.text(max_size=5) | st.integers() | st.booleans(), inner, max_size=2)
        ),
        max_leaves=4,
    ),
)
def test_whatever_stands_anywhere_is_taken_or_refused_in_words(
    tmp_path_factory: pytest.TempPathFactory, path: tuple[str | int, ...], value: Any
) -> None:
    document = copy.deepcopy(SMALL)
    place = document
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    file = tmp_path_factory.mktemp("any") / "firstbell.yaml"
    file.write_text(yaml.safe_dump(document, allow_unicode=True), encoding="utf-8")
    try:
        load(file)
    except WrongFile as error:
        assert all("allowed: " in line for line in str(error).splitlines())  # noqa: PT017


@pytest.mark.parametrize("text", ["clusters: &a\n- *a\n", "clusters: \x00\n", "clusters: &a [*a]\n"])
def test_what_yaml_itself_stumbles_over_is_refused_in_words(tmp_path: Path, text: str) -> None:
    file = tmp_path / "firstbell.yaml"
    file.write_text(text)
    with pytest.raises(WrongFile, match="allowed: "):
        load(file)
