"""A driver process for the kill tests: `python -m tests.pipeline.driver VIDEOS OUT`, with fake stages."""

from __future__ import annotations

import logging
import sys
from pathlib import Path

from tests.pipeline.conftest import config_for, run_fakes

KILL_OVERRIDES = ("run.num_cpus=2", "run.perceive.actors=2", "run.in_flight=3")

if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO)
    run_fakes(config_for(Path(sys.argv[1]), KILL_OVERRIDES), Path(sys.argv[2]))
