"""Where the programs come from, and what a failed build says."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from localcloud.controlplane import build
from localcloud.controlplane.build import KUBE, KWOK, BuildFailed, GoModule, ensure_programs, find_go

ALL = KUBE.programs + KWOK.programs


def assets(folder: Path, *names: str) -> dict[str, str]:
    for name in names:
        (folder / name).touch()
    return {"KUBEBUILDER_ASSETS": str(folder), "XDG_CACHE_HOME": str(folder / "cache")}


def a_go(folder: Path, script: str) -> None:
    """Put a program named go first on PATH."""
    go = folder / "go"
    go.write_text(f"#!/bin/sh\n{script}\n")
    go.chmod(0o755)


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> GoModule:
    monkeypatch.setattr(build, "HERE", tmp_path)
    (tmp_path / "tiny").mkdir()
    (tmp_path / "tiny" / "go.mod").write_text("module tiny\n")
    return GoModule(name="tiny", package=".", programs=("one", "two"))


@pytest.fixture
def fake_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """A Go 1.26 whose `list` and `build` do what the test says."""
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    return lambda script: a_go(tmp_path, f'if [ "$1" = env ]; then echo go1.26.0; exit; fi\n{script}')


def test_assets_that_have_everything_need_no_build(tmp_path: Path) -> None:
    lines: list[str] = []

    programs = ensure_programs(lines.append, assets(tmp_path, *ALL))

    assert programs == {name: tmp_path / name for name in ALL}
    assert lines == []


def test_assets_without_an_api_server_are_refused_with_a_remedy(tmp_path: Path) -> None:
    with pytest.raises(BuildFailed, match=r"no kube-apiserver\n.*what to do"):
        ensure_programs(print, assets(tmp_path, "etcd"))


def test_what_the_assets_lack_is_built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def already_built(module: GoModule, cache: Path, report: build.Report) -> Path:
        return cache / module.name

    monkeypatch.setattr(build, "_ensure_built", already_built)

    programs = ensure_programs(print, assets(tmp_path, "etcd", "kube-apiserver"))

    assert programs["etcd"] == tmp_path / "etcd"
    assert programs["kube-scheduler"] == tmp_path / "cache" / "firstbell" / "kube" / "kube-scheduler"
    assert programs["kwok"] == tmp_path / "cache" / "firstbell" / "kwok" / "kwok"


def test_the_fingerprint_changes_with_a_source_and_with_a_pinned_sum(module: GoModule) -> None:
    seen = {module.fingerprint()}
    for name in ("main.go", "go.sum", "go.mod"):
        (module.folder / name).write_text(f"{name} changed\n")
        seen.add(module.fingerprint())
    (module.folder / "notes.txt").write_text("not a source\n")

    assert len(seen) == 4
    assert module.fingerprint() in seen


def test_a_build_is_published_whole_under_every_name(
    module: GoModule, fake_go: Callable[[str], None], tmp_path: Path
) -> None:
    fake_go('for last; do case "$before" in -o) echo built > "$last";; esac; before="$last"; done')

    folder = build._ensure_built(module, tmp_path / "cache", print)

    assert [(folder / name).read_text() for name in module.programs] == ["built\n", "built\n"]
    assert build._ensure_built(module, tmp_path / "cache", print) == folder
    assert [entry.name for entry in (tmp_path / "cache").iterdir() if entry.is_dir()] == [folder.name]


def test_a_failed_step_says_which_why_and_what_to_do(
    module: GoModule, fake_go: Callable[[str], None], tmp_path: Path
) -> None:
    fake_go("echo 'dial tcp: no route to host' >&2; exit 1")

    with pytest.raises(BuildFailed) as failure:
        build._ensure_built(module, tmp_path / "cache", print)

    assert "could not download the Go modules" in str(failure.value)
    assert "no route to host" in str(failure.value)
    assert "GOPROXY" in str(failure.value)
    assert [entry for entry in (tmp_path / "cache").iterdir() if entry.is_dir()] == []


def test_an_old_go_is_passed_over_and_named_when_there_is_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    a_go(tmp_path, "echo go1.22.1")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))

    with pytest.raises(BuildFailed, match=r"go is go1\.22\.1"):
        find_go()
