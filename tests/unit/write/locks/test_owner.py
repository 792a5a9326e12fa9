from __future__ import annotations

import os
from dataclasses import replace

import pytest

from drawstring.write.locks import owner as module
from drawstring.write.locks.owner import Owner

GONE = 2**22 + 1  # beyond the largest process id of Linux


def test_own_process_is_alive_and_survives_the_file():
    me = Owner.me()
    assert not me.is_dead
    assert me.is_this_process
    assert Owner.parse(me.to_bytes()) == me
    assert Owner.me().token != me.token


@pytest.mark.parametrize(
    ("change", "dead"),
    [
        ({"pid": GONE}, True),
        ({"pid": -1}, True),
        ({"started": "1"}, True),
        # Containers and other machines: the number means nothing here.
        ({"pid": GONE, "pid_namespace": "pid:[4026532999]"}, False),
        ({"pid": GONE, "pid_namespace": ""}, False),
        ({"pid": GONE, "boot": "another kernel"}, False),
        ({"pid": GONE, "boot": ""}, False),
        ({"pid": GONE, "host": "another name of this machine"}, True),
        # A clone of this machine: all equal but the running kernel.
        ({"pid": GONE, "boot": "clone", "since_ms": 2**50}, False),
    ],
)
def test_death_is_proven_only_in_the_same_kernel_and_name_space(change, dead):
    assert replace(Owner.me(), **change).is_dead is dead


@pytest.mark.parametrize(
    ("change", "dead"),
    [
        ({}, True),
        ({"machine": ""}, False),
        ({"machine": "other"}, False),
        ({"host": "other"}, False),
        ({"pid_namespace": "pid:[4026532999]"}, False),
        ({"since_ms": 2**50}, False),
        ({"since_ms": 0}, False),
    ],
)
def test_restart_of_the_machine_is_proof(monkeypatch, change, dead):
    me = replace(module._this_process(os.getpid()), machine="m", pid_namespace=module._INITIAL_NAMESPACE)
    monkeypatch.setattr(module, "_this_process", lambda _pid: me)
    before = replace(me, boot="the boot before", since_ms=module._booted_ms() - 60_000)
    assert replace(before, **change).is_dead is dead


def test_container_that_shows_the_machine_id_of_its_image_proves_nothing(monkeypatch):
    me = replace(module._this_process(os.getpid()), machine="image", pid_namespace="pid:[4026532111]")
    monkeypatch.setattr(module, "_this_process", lambda _pid: me)
    assert not replace(me, boot="another host", since_ms=1, pid=GONE).is_dead


def test_process_that_proc_hides_is_alive(monkeypatch):
    monkeypatch.setattr(module, "_stat", lambda pid: ("", ""))
    assert not replace(Owner.me(), pid=os.getppid()).is_dead
    assert replace(Owner.me(), pid=GONE).is_dead


def test_nothing_is_proven_where_proc_belongs_to_another_name_space(monkeypatch):
    monkeypatch.setattr(os, "readlink", lambda path: "1" if path == "/proc/self" else "pid:[1]")
    assert module._namespace(os.getpid()) == ""


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"null",
        b"[]",
        b"{}",
        b'{"host": "h", "pid": "1", "started": "1", "token": "t"}',
        b"\xff",
        b'{"pid": 1}',
    ],
)
def test_other_files_name_no_owner(content):
    assert Owner.parse(content) is None


def test_lock_of_an_older_version_is_understood_but_never_proven_dead():
    old = Owner.parse(b'{"host": "h", "pid": 4194305, "started": "1", "token": "t"}')
    assert old is not None
    assert not old.is_dead
