"""The command line's grammar. Imports nothing heavy."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

from rvt_ray import __version__

_EXITS = """exit codes: 0 done; 1 unexpected error, or `validate` found problems; 2 wrong option, setting,
path or resource; 3 done, but more rows failed than run.max_failed_share allows; 130 interrupted."""

_RUNS = (
    ("build", "everything: sources to finalised corpus", True),
    ("perceive", "sources to digital twins (staged)", True),
    ("generate", "staged twins to samples (staged)", False),
)


def make_parser() -> argparse.ArgumentParser:
    """The whole grammar."""
    parser = argparse.ArgumentParser(
        prog="rvt-ray",
        description="Raw video in, reasoning visual tasks with proven truth out.",
        epilog=_EXITS,
    )
    parser.add_argument("--version", action="version", version=f"rvt-ray {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, text, sources in _RUNS:
        command = _add(commands, name, text, function="run_job")
        _add_config(command)
        if sources:
            _add_sources(command)
        command.add_argument(
            "--out", required=True, metavar="OUT", help="output root: a folder or fsspec URI"
        )
        command.add_argument(
            "--retry-failed", action="store_true", help="try again what failed in an earlier run"
        )
    command = _add(commands, "finalise", "staged output to sorted shards and manifest")
    _add_config(command)
    command.add_argument("--out", required=True, metavar="OUT", help="output root of the run")
    _add_reports(commands)
    _add_evaluation(commands)
    _add_machine(commands)
    return parser


def _add_reports(commands: Any) -> None:
    command = _add(commands, "validate", "check a finished corpus: every row, mask, box and checksum")
    command.add_argument("out", metavar="OUT", help="folder of the corpus")
    command.add_argument(
        "--max-problems", type=int, default=100, metavar="N", help="print at most so many (default: 100)"
    )
    command = _add(commands, "show", "write static pages to look at a finished corpus")
    command.add_argument("out", metavar="OUT", help="folder of the corpus")
    command.add_argument("--pages", metavar="FOLDER", help="where the pages go (default: OUT/pages)")
    command.add_argument("--limit", type=int, metavar="N", help="pages for the first N clips only")
    command = _add(commands, "audit", "write a page on which people judge a draw of samples")
    command.add_argument("out", metavar="OUT", help="folder of the corpus")
    command.add_argument(
        "--n", type=int, default=200, metavar="N", help="samples, even over task and level (default: 200)"
    )
    command.add_argument("--seed", type=int, default=0, metavar="N", help="of the draw")
    command.add_argument("--pages", metavar="FOLDER", help="where the page goes (default: OUT/audit)")
    command = _add(commands, "audit-report", "error rates and agreement of raters", function="audit_report")
    command.add_argument("verdicts", nargs="+", metavar="VERDICTS", help="exported .jsonl files")
    command.add_argument("--json", action="store_true", help="machine-readable")
    twin = _add(commands, "twin", "look at one digital twin", function=None)
    inner = twin.add_subparsers(dest="twin_command", required=True, metavar="COMMAND")
    command = _add(inner, "show", "print a twin", function="twin_show")
    command.add_argument("clip", metavar="CLIP", help="clip id, or its beginning")
    command.add_argument("--out", default=".", metavar="OUT", help="folder of the corpus (default: here)")
    command.add_argument("--json", action="store_true", help="the paper's JSON form, complete")


def _add_evaluation(commands: Any) -> None:
    command = _add(commands, "solve", "answer a question about a video, or every question of a corpus")
    _add_config(command)
    command.add_argument("--video", metavar="PATH", help="video file or folder of frames")
    command.add_argument("--query", metavar="TEXT", help="the question, or what is to be found")
    command.add_argument(
        "--choice", dest="choices", action="append", default=[], metavar="TEXT", help="a choice; repeatable"
    )
    command.add_argument("--annotations", metavar="FORMAT:PATH", help="masks that exist for the video")
    command.add_argument("--cache", metavar="FOLDER", help="where twins are kept (default: the user's cache)")
    command.add_argument("--corpus", metavar="CORPUS", help="folder of a finished corpus")
    command.add_argument("--out", default="solution", metavar="OUT", help="folder of the result")
    command.add_argument("--retry-failed", action="store_true", help="try failed clips again (--corpus)")
    command.add_argument("--no-evaluation", action="store_true", help="predictions only (--corpus)")
    _add_scoring(command)
    command = _add(commands, "evaluate", "score predictions against a corpus", function="run_evaluate")
    _add_config(command)
    command.add_argument("corpus", metavar="CORPUS", help="folder of a finished corpus")
    command.add_argument("predictions", metavar="PREDICTIONS", help=".jsonl, .parquet, or a folder of them")
    command.add_argument("--out", default="evaluation", metavar="OUT", help="folder of the report")
    command.add_argument("--judge", action="store_true", help="agent.llm grades free answers")
    _add_scoring(command)
    command = _add(commands, "compare", "two reports, paired by video", function="run_compare")
    command.add_argument("a", metavar="A.json", help="report.json of one evaluation")
    command.add_argument("b", metavar="B.json", help="report.json of another on the same corpus")
    command.add_argument("--out", metavar="FILE", help="write the whole comparison as JSON")
    command.add_argument("--draws", type=int, default=2000, metavar="N", help="of the bootstrap")


def _add_scoring(command: argparse.ArgumentParser) -> None:
    command.add_argument("--name", metavar="NAME", help="the model's name in the report")
    command.add_argument("--skip-ends", action="store_true", help="DAVIS' protocol: no first and last frame")
    command.add_argument("--idf", metavar="FILE", help="frozen IDF table for CIDEr, of another evaluation")
    command.add_argument("--bert-model", metavar="MODEL", help="model for BERTScore (default: skipped)")
    command.add_argument("--bert-layer", metavar="N", type=int, help="its layer (default: the last one)")
    command.add_argument("--baselines", metavar="A,B", help="which baselines to score ('' for none)")
    command.add_argument("--no-plots", action="store_true", help="no plots (they need matplotlib)")
    command.add_argument("--seed", type=int, default=0, metavar="N", help="of the bootstrap")
    command.add_argument("--draws", type=int, default=1000, metavar="N", help="of the bootstrap")


def _add_machine(commands: Any) -> None:
    command = _add(commands, "doctor", "what this machine can do, and the remedy for what it cannot")
    command.add_argument("--json", action="store_true", help="machine-readable")
    models = _add(commands, "models", "model weights on this machine", function=None)
    inner = models.add_subparsers(dest="models_command", required=True, metavar="COMMAND")
    _add(inner, "list", "known weights and whether they are here", function="models_list")
    command = _add(inner, "pull", "download weights", function="models_pull")
    command.add_argument("name", metavar="NAME", help="a name of `models list`, or a hub id owner/name")
    command.add_argument("--revision", metavar="REV", help="commit or tag")


def _add(commands: Any, name: str, text: str, *, function: str | None = "") -> argparse.ArgumentParser:
    command: argparse.ArgumentParser = commands.add_parser(name, help=text, description=text)
    if function is not None:
        command.set_defaults(function=function or name)
        command.add_argument("-v", "--verbose", action="count", default=0, help="say more (twice: debug)")
        command.add_argument("-q", "--quiet", action="count", default=0, help="warnings and errors only")
    return command


def _add_config(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--config", metavar="YAML", help="settings file; without one: no model weights, two cores"
    )
    command.add_argument(
        "--set",
        dest="overrides",
        action="append",
        default=[],
        metavar="A.B=VALUE",
        help="one setting, as YAML; repeatable, e.g. --set run.perceive.actors=4",
    )


def _add_sources(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--source",
        dest="sources",
        action=_AddSource,
        default=[],
        metavar="PATH",
        help="folder of videos, folder of frames, video file, manifest, or URI; repeatable; "
        "takes the place of the config's sources",
    )
    for option, key, metavar, text in (
        ("--annotations", "annotations", "FORMAT:PATH", "masks that exist for the --source before it"),
        ("--license", "license", "SPDX", "licence of the --source before it"),
        ("--source-type", "type", "TYPE", "`videos`, `frames`, `manifest` or package.module:Class"),
        ("--source-name", "name", "NAME", "name of the --source before it, as it stands in the rows"),
    ):
        command.add_argument(
            option, dest=f"source_{key}", action=_AmendSource, metavar=metavar, help=text, default=None
        )


class _AddSource(argparse.Action):
    """--source PATH: a new source."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: str | Sequence[Any] | None,
        option_string: str | None = None,
    ) -> None:
        namespace.sources = [*namespace.sources, {"path": str(values)}]


class _AmendSource(argparse.Action):
    """An option that says more of the --source before it."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: str | Sequence[Any] | None,
        option_string: str | None = None,
    ) -> None:
        if not namespace.sources:
            parser.error(f"{option_string} says something of the --source before it; there is none")
        source = namespace.sources[-1]
        key, value = self.dest.removeprefix("source_"), str(values)
        if key in source:
            parser.error(f"{option_string} twice for --source {source['path']}")
        source[key] = value
        if key == "annotations":
            form, colon, path = value.partition(":")
            if not colon or not form or not path:
                parser.error(f"--annotations {value!r}: write it as FORMAT:PATH, e.g. davis:masks/")
            source["annotation_format"], source["annotations"] = form, path
