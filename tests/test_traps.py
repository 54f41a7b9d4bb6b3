"""The table of traps names tests that exist."""

from __future__ import annotations

import re
from pathlib import Path

TESTS = Path(__file__).parent
TABLE = (TESTS.parent / "docs" / "traps.md").read_text(encoding="utf-8")


def written() -> set[str]:
    return {
        name
        for path in TESTS.rglob("test_*.py")
        for name in re.findall(r"^def (test_trap_\w+)", path.read_text(encoding="utf-8"), re.MULTILINE)
    }


def test_every_trap_of_the_table_has_its_tests() -> None:
    rows = re.findall(r"^\| (\d+) \|.*\| ([^|]*) \|$", TABLE, re.MULTILINE)
    assert {int(number) for number, _ in rows} >= {*range(1, 10), *range(12, 16)}
    there = written()
    for number, cell in rows:
        names = re.findall(r"`(test_\w+)`", cell)
        assert names, f"trap {number} has no test"
        for name in names:
            assert name in there, f"docs/traps.md names {name}, which no file has"
            assert name.startswith(f"test_trap_{number}_"), f"{name} stands in the row of trap {number}"


def test_no_test_of_a_trap_is_missing_in_the_table() -> None:
    listed = {int(number) for number in re.findall(r"^\| (\d+) \|", TABLE, re.MULTILINE)}
    for name in written():
        if int(name.split("_")[2]) in listed:
            assert f"`{name}`" in TABLE, f"docs/traps.md does not name {name}"
