"""A few of the accidents of `make crash`: kills, failing disks, damage, strangers and crowds."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from benchmarks.crash import damage, histories, hostile, shim
from benchmarks.crash.crowd import crowd

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]


def in_danger(script):
    """Run a script in a process where faults can happen; it prints what was wrong."""
    if missing := shim.missing():
        pytest.skip(missing)
    environment = shim.environment() | {"PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", script],
        env=environment,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    count, _, wrong = done.stdout.partition("\n")
    assert int(count) > 0
    assert wrong == ""


def test_no_confirmed_edit_is_lost_when_a_process_is_killed():
    in_danger("""
from benchmarks.crash import kills
total = kills.every_call("correcting", 80) + kills.every_call("forgetting", 80)
total += kills.at_random(5)
print(total.kills, *total.wrong, sep="\\n", end="\\n" * bool(total.wrong))
""")


def test_no_confirmed_edit_is_lost_when_the_power_fails():
    in_danger("""
from benchmarks.crash import power
total = power.failures("correcting", 25)
print(total.kills, *total.wrong, sep="\\n", end="\\n" * bool(total.wrong))
""")


def test_the_accidents_would_show_a_disk_that_does_not_sync():
    in_danger("""
from benchmarks.crash import power
record = power.recorded
power.recorded = lambda name: [call for call in record(name) if call.kind != "s"]
print(len(power.failures("growing", 25).wrong))
""")


def test_a_copy_in_the_place_of_a_crashed_file_is_not_spoilt():
    in_danger("""
from benchmarks.crash import restores
total = restores.restores(60)
print(total.kills, *total.wrong, sep="\\n", end="\\n" * bool(total.wrong))
""")


def test_a_failing_disk_changes_nothing_or_all():
    in_danger("""
from benchmarks.crash import disks, shim
total = disks.failing("add", "ENOSPC", shim.FAIL_FROM, 11)
total += disks.failing("relabel", "EROFS", shim.FAIL_FROM, 9)
total += disks.failing("forget", "EIO", shim.FAIL_ONCE, 41)
print(total.kills, *total.wrong, sep="\\n", end="\\n" * bool(total.wrong))
""")


@pytest.mark.parametrize(("kind", "count", "step"), [("bits", None, 997), ("lengths", None, 211)])
def test_no_damage_is_silently_wrong(kind, count, step):
    total = damage.damaged(kind, count, step, processes=1)
    assert total.kills > 30
    assert total.wrong == []


def test_random_damage_is_never_silently_wrong():
    assert damage.damaged("mutations", 150, processes=1).wrong == []


def test_hostile_files_do_no_harm():
    total = hostile.by_hand()
    assert total.kills >= 50
    assert total.wrong == []


def test_readers_and_writers_at_once():
    total, views = crowd(2.5, readers=3, writers=2)
    assert total.wrong == []
    assert total.confirmed > 0
    assert views > 0


def test_nothing_is_left_of_what_was_forgotten():
    total, said = histories.forgetting(6)
    assert total.wrong == []
    assert said["clean"] > 0
