from __future__ import annotations

from collections.abc import Iterator

import pytest

from rvt_ray.video import close_idle


@pytest.fixture(scope="session", autouse=True)
def _no_child_outlives_the_tests() -> Iterator[None]:
    yield
    close_idle()
