from __future__ import annotations

import pytest

from rvt_ray.backends import BackendSpec, Options, build, resolve
from rvt_ray.errors import ConfigError

HERE = "tests.config.test_backends"


class Good:
    class Options(Options):
        step: int = 1

    def __init__(self, options: Options) -> None:
        self.options = options


BUILTIN = {"good": f"{HERE}:Good"}


def test_a_short_name_and_a_dotted_path_give_the_same_class() -> None:
    assert resolve("good", BUILTIN, "x") is resolve(f"{HERE}:Good", {}, "x")


def test_options_reach_the_backend() -> None:
    assert build(BackendSpec(backend="good", options={"step": 3}), BUILTIN, "x").options.step == 3


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        (BackendSpec(backend="god"), "perceive.segment: unknown backend 'god'; did you mean 'good'"),
        (BackendSpec(backend="no_such_module:X"), "cannot import 'no_such_module'"),
        (BackendSpec(backend=f"{HERE}:Bad"), "has no class 'Bad'"),
        (BackendSpec(backend="good", options={"stpe": 3}), "unknown key 'stpe'; did you mean 'step'"),
        (BackendSpec(backend="good", options={"step": "many"}), "step: Input should be a valid integer"),
    ],
)
def test_a_wrong_backend_is_refused_with_field_and_remedy(spec: BackendSpec, said: str) -> None:
    with pytest.raises(ConfigError, match=r"perceive\.segment") as caught:
        build(spec, BUILTIN, "perceive.segment")
    assert said in str(caught.value)
