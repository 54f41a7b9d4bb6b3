"""Logging of the console command: to stderr, short lines on a terminal, with time and place elsewhere."""

from __future__ import annotations

import logging
import sys

_LEVELS = {-1: logging.WARNING, 0: logging.INFO, 1: logging.DEBUG}


def configure_logging(verbosity: int) -> None:
    """Set up the package's logger. -1: warnings and errors; 0: progress; 1: more; 2: other packages as
    well."""
    terminal = sys.stderr.isatty()
    handler = logging.StreamHandler()
    if terminal:
        handler.setFormatter(logging.Formatter("%(levelname).1s %(message)s"))
    else:
        handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    root = logging.getLogger() if verbosity >= 2 else logging.getLogger("rvt_ray")
    for old in [h for h in root.handlers if isinstance(h, logging.StreamHandler)]:
        root.removeHandler(old)
    root.addHandler(handler)
    root.setLevel(_LEVELS[max(-1, min(1, verbosity))])
