"""What each command does. Every function takes the parsed arguments and gives an exit code."""

from __future__ import annotations

import argparse
import json
import logging
import sys
from pathlib import Path
from typing import Any

from rvt_ray.config import Config, load_config
from rvt_ray.errors import ConfigError, RvtError

logger = logging.getLogger(__name__)

OK, ERROR, PARTIAL = 0, 1, 3


def run_job(args: argparse.Namespace) -> int:
    """build, perceive, generate."""
    config = config_of(args)
    from rvt_ray.pipeline import run as job

    function = {"build": job.build, "perceive": job.perceive, "generate": job.generate}[args.command]
    result = function(
        config,
        args.out,
        retry_failed=args.retry_failed,
        bar=False if args.quiet else None,
        verbose=args.verbose > 0,
    )
    limit = config.run.max_failed_share
    if result.too_many_failed(limit):
        shares = ", ".join(
            f"{stage} {share:.0%}" for stage, share in result.failed_share.items() if share > limit
        )
        logger.error(
            "more failed than run.max_failed_share = %g allows: %s. The failures table says why; "
            "--retry-failed tries them again",
            limit,
            shares,
        )
        return PARTIAL
    return OK


def finalise(args: argparse.Namespace) -> int:
    """Staged output -> corpus."""
    from rvt_ray.pipeline import run as job

    job.finalise(config_of(args), args.out)
    return OK


def validate(args: argparse.Namespace) -> int:
    """Check a finished corpus."""
    from rvt_ray.pipeline.validate import validate_corpus

    report = validate_corpus(args.out)
    for problem in report.problems[: args.max_problems]:
        say(str(problem))
    hidden = len(report.problems) - args.max_problems
    if hidden > 0:
        say(f"... and {hidden} more (--max-problems)")
    say(f"{args.out}: {len(report.problems)} problems; checked {report.checked}")
    return ERROR if report.problems else OK


def show(args: argparse.Namespace) -> int:
    """Static pages."""
    from rvt_ray.gallery import write_gallery

    out = Path(args.out)
    pages = Path(args.pages) if args.pages else out / "pages"
    say(str(write_gallery(out, pages, limit=args.limit)))
    return OK


def twin_show(args: argparse.Namespace) -> int:
    """One twin, as a summary or in the paper's JSON form."""
    from rvt_ray.corpus import Corpus
    from rvt_ray.twin.paper_json import to_paper_json

    corpus = Corpus(args.out)
    ids = [row["clip_id"] for row in corpus.tables["twins"].scan(["clip_id"])]
    matches = [clip_id for clip_id in ids if clip_id.startswith(args.clip)]
    if len(matches) != 1:
        some = ", ".join((matches or ids)[:5])
        raise ConfigError(
            f"{args.out}: {len(matches)} twins match {args.clip!r}; "
            f"{'some of them' if matches else 'there are'}: {some}"
        )
    twin = corpus.twin(matches[0])
    if twin is None:
        raise RvtError(f"{args.out}: the twin of {matches[0]} cannot be read")
    if args.json:
        sys.stdout.write(json.dumps(to_paper_json(twin), ensure_ascii=False) + "\n")
        return OK
    say(
        f"{twin.clip_id}: {twin.num_frames} frames {twin.width}x{twin.height}, "
        f"camera {twin.scene.camera_motion}, depth {twin.depth_kind}"
    )
    for instance in twin.instances:
        seen = sum(instance.track.visible)
        attributes = ", ".join(f"{a.name} {a.value}" for a in instance.attributes)
        say(f"  {instance.instance_id}: {instance.category}, seen on {seen} frames, {attributes}")
    return OK


def doctor(args: argparse.Namespace) -> int:
    """What this machine can do."""
    from rvt_ray import doctor as room

    findings = room.examine()
    if args.json:
        sys.stdout.write(room.to_json(findings) + "\n")
    else:
        say(room.to_text(findings))
    return OK


def models_list(args: argparse.Namespace) -> int:
    """Known weights."""
    from rvt_ray.llm import models

    for weights in models.KNOWN.values():
        place = models.where(weights.name)
        say(
            f"{weights.name:<26} {weights.kind:<8} {weights.license:<12} {weights.size_mb:>5} MB  "
            f"{place if place is not None else 'not here: rvt-ray models pull ' + weights.name}"
        )
    return OK


def models_pull(args: argparse.Namespace) -> int:
    """Download weights."""
    from rvt_ray.llm import models

    say(str(models.pull(args.name, args.revision)))
    return OK


def config_of(args: argparse.Namespace) -> Config:
    """The settings of the command line: file, then --set, then --source (which takes the sources' place)."""
    config = load_config(args.config, args.overrides)
    given: list[dict[str, Any]] = getattr(args, "sources", [])
    if not given:
        return config
    data = config.model_dump(mode="json")
    data["sources"] = _named(given)
    return Config.model_validate(data)


def _named(sources: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Sources with distinct names: two folders called `videos` become `videos` and `videos-2`."""
    taken: set[str] = set()
    named = []
    for source in sources:
        base = source.get("name") or Path(source["path"].rstrip("/")).stem
        name, n = base, 2
        while name in taken:
            name, n = f"{base}-{n}", n + 1
        taken.add(name)
        named.append({**source, "name": name})
    return named


def say(text: str) -> None:
    """A command's result: to stdout."""
    sys.stdout.write(text + "\n")
