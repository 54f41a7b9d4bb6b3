"""The console command `rvt-ray`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from enum import IntEnum

from rvt_ray.cli.parser import make_parser


class Exit(IntEnum):
    """Exit codes. Contract: scripts rely on them."""

    OK = 0
    ERROR = 1  # unexpected, or `validate` found problems
    MISUSE = 2  # a wrong option, setting, path or resource: the user's to mend
    PARTIAL = 3  # the run ended, but more than run.max_failed_share of some stage's rows failed
    INTERRUPTED = 130


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command. Returns the exit code; argparse's own errors and --help leave by SystemExit."""
    args = make_parser().parse_args(argv)
    # Commands import what they need: `rvt-ray --help` must not wait for Ray or OpenCV.
    from rvt_ray.cli import audit, commands, evaluation
    from rvt_ray.cli.logs import configure_logging
    from rvt_ray.errors import ConfigError, RvtError

    configure_logging(args.verbose - args.quiet)
    rooms = (commands, evaluation, audit)
    command = next(f for room in rooms if (f := getattr(room, args.function, None)) is not None)
    try:
        return int(command(args))
    except ConfigError as error:
        _say(f"rvt-ray {args.command}: {error}")
        return Exit.MISUSE
    except RvtError as error:
        _say(f"rvt-ray {args.command}: {error}")
        return Exit.ERROR
    except KeyboardInterrupt:
        _say("interrupted. What is done is kept: the same command goes on from here")
        return Exit.INTERRUPTED
    except BrokenPipeError:
        # The reader of our output (`| head`) has left; that is its right.
        sys.stderr.close()
        return Exit.OK


def _say(text: str) -> None:
    sys.stderr.write(text + "\n")


__all__ = ["Exit", "main"]
