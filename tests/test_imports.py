"""Guards the direction of imports: records <- masks, video <- perception <- twin <- reasoning <- queries,
evaluation, agent <- pipeline <- cli. A room may import rooms of a lower rank only."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1] / "rvt_ray"

RANK = {
    "records": 0,
    "errors": 1,
    "backends": 2,
    "corpus": 2,
    "loading": 5,
    "config": 3,
    "masks": 4,
    "video": 4,
    "llm": 4,
    "sources": 5,
    "synthetic": 5,
    "perception": 6,
    "twin": 7,
    "reasoning": 8,
    "queries": 9,
    "agent": 10,
    "evaluation": 10,
    "gallery": 10,
    "export": 10,
    "pipeline": 11,
    "doctor": 12,
    "cli": 13,
}

FILES = sorted(ROOT.rglob("*.py"))


def room_of(parts: tuple[str, ...]) -> str:
    return parts[1].removesuffix(".py") if len(parts) > 1 else ""


def imported_rooms(path: Path) -> set[str]:
    rooms = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import; write the full path"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        rooms |= {name.split(".")[1] for name in names if name.startswith("rvt_ray.")}
    return rooms


@pytest.mark.parametrize("path", FILES, ids=[str(p.relative_to(ROOT)) for p in FILES])
def test_a_room_imports_only_lower_rooms(path: Path) -> None:
    room = room_of(("rvt_ray", *path.relative_to(ROOT).parts))
    if room == "__init__":
        return
    assert room in RANK, f"{path}: {room} is not a room of docs/design.md; give it a rank here and there"
    for other in imported_rooms(path) - {room, "__version__"}:
        assert other in RANK, f"{path} imports unknown room {other}"
        assert RANK[other] < RANK[room], f"{path} ({room}) imports upward or sideways from {other}"


def test_only_the_pipeline_imports_ray() -> None:
    for path in FILES:
        room = room_of(("rvt_ray", *path.relative_to(ROOT).parts))
        if room in {"pipeline", "doctor"}:
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                modules = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                modules = [node.module or ""]
            else:
                continue
            assert not any(m == "ray" or m.startswith("ray.") for m in modules), f"{path} imports ray"
