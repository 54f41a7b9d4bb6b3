"""The commands by which people judge a corpus."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from rvt_ray.cli.commands import OK, say
from rvt_ray.errors import ConfigError


def audit(args: argparse.Namespace) -> int:
    """A page to judge samples on."""
    if args.n < 1:
        raise ConfigError(f"--n {args.n}: a draw has at least one sample")
    from rvt_ray.gallery import write_audit

    pages = Path(args.pages) if args.pages else None
    page = write_audit(Path(args.out), args.n, args.seed, pages)
    say(f"{page}: open it in a browser, judge, export; then `rvt-ray audit-report FILE...`")
    return OK


def audit_report(args: argparse.Namespace) -> int:
    """What the judges said."""
    from rvt_ray.evaluation import audit_report as room

    report = room.audit_report(room.read_verdicts([Path(p) for p in args.verdicts]))
    if args.json:
        say(json.dumps(report.as_dict(), indent=2, ensure_ascii=False))
    else:
        say(room.to_text(report))
    return OK
