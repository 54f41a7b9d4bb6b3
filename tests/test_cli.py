"""The console command: exit codes, error texts, options; real processes where the process matters."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from rvt_ray.cli import Exit, main
from rvt_ray.cli.commands import config_of
from rvt_ray.cli.parser import make_parser
from rvt_ray.pipeline import run as job
from rvt_ray.records import Stage
from tests.pipeline.conftest import config_for, make_videos, run_inline

COMMANDS = [
    ["build"],
    ["perceive"],
    ["generate"],
    ["finalise"],
    ["validate"],
    ["show"],
    ["twin", "show"],
    ["solve"],
    ["evaluate"],
    ["compare"],
    ["doctor"],
    ["models", "list"],
    ["models", "pull"],
]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("cli")
    run_inline(config_for(make_videos(root / "videos", 1)), root / "out")
    return root / "out"


def config(*words: str) -> Any:
    return config_of(make_parser().parse_args(["build", "--out", "o", *words]))


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_every_command_explains_itself(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as leave:
        main([*command, "--help"])
    assert leave.value.code == 0
    assert "usage: rvt-ray " + " ".join(command) in capsys.readouterr().out


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys\nfrom rvt_ray.cli import main\n"
        "try:\n    main(['build', '--help'])\nexcept SystemExit:\n    pass\n"
        "heavy = {'ray', 'torch', 'cv2', 'pyarrow', 'numpy', 'pydantic', 'vllm'} & set(sys.modules)\n"
        "sys.exit(f'imported {heavy}' if heavy else 0)"
    )
    best = 10.0
    for _ in range(3):
        start = time.perf_counter()
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
        best = min(best, time.perf_counter() - start)
        assert done.returncode == 0, done.stderr
    assert best < 2.0  # 0.1 s on an idle machine


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["build", "--out", "{tmp}/o"], "no sources"),
        (["build", "--source", "{tmp}/nowhere", "--out", "{tmp}/o"], "nowhere: no such file"),
        (["build", "--config", "{tmp}/no.yaml", "--out", "{tmp}/o"], "cannot read the config"),
        (["build", "--set", "perceive.segmnt=x", "--out", "{tmp}/o"], "did you mean 'segment'"),
        (
            ["build", "--source", "{tmp}", "--set", "perceive.segment.backend=motoin", "--out", "{tmp}/o"],
            "did you mean 'motion'",
        ),
        (
            [
                "build",
                "--source",
                "{tmp}",
                "--set",
                "perceive.segment={backend: motion, options: {tyop: 1}}",
                "--out",
                "{tmp}/o",
            ],
            "unknown key 'tyop'",
        ),
        (
            ["generate", "--set", "generate.llm.backend=vlm", "--out", "{tmp}/o"],
            "did you mean 'vllm'",
        ),
        (["finalise", "--out", "{tmp}/o"], "nothing was staged here yet"),
        (["show", "{tmp}"], "not a finished corpus"),
        (["twin", "show", "abc", "--out", "{tmp}"], "not a finished corpus"),
        (["models", "pull", "nosuch"], "nosuch"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_misuse_is_refused_in_words_before_any_work(
    words: list[str], says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = main([word.replace("{tmp}", str(tmp_path)) for word in words])
    assert says in capsys.readouterr().err
    assert code in (Exit.MISUSE, Exit.ERROR)
    if words[0] in ("build", "generate", "finalise"):
        assert code == Exit.MISUSE
        assert not list(tmp_path.rglob("*.parquet"))


def test_an_unknown_option_is_misuse() -> None:
    with pytest.raises(SystemExit) as leave:
        main(["build", "--sauce", "x"])
    assert leave.value.code == Exit.MISUSE


def test_sources_of_the_command_line_take_the_place_of_the_configs(tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text("sources: [{path: old}]")
    assert [s.path for s in config("--config", str(tmp_path / "c.yaml")).sources] == ["old"]
    found = config(
        "--config", str(tmp_path / "c.yaml"), "--source", "a/videos", "--source", "b/videos/"
    ).sources
    assert [(s.path, s.name) for s in found] == [("a/videos", "videos"), ("b/videos/", "videos-2")]


def test_options_after_a_source_say_something_of_that_source() -> None:
    one, two = config(
        "--source",
        "a",
        "--license",
        "MIT",
        "--source",
        "b",
        "--annotations",
        "davis:m/x",
        "--source-name",
        "n",
    ).sources
    assert (one.license, one.annotations) == ("MIT", None)
    assert (two.name, two.annotation_format, two.annotations) == ("n", "davis", "m/x")
    assert two.license == "unknown"


@pytest.mark.parametrize(
    "words",
    [
        ["--annotations", "davis:m"],
        ["--source", "a", "--annotations", "m"],
        ["--source", "a", "--license", "MIT", "--license", "BSD"],
    ],
)
def test_an_option_without_its_source_is_refused(words: list[str]) -> None:
    with pytest.raises(SystemExit) as leave:
        config(*words)
    assert leave.value.code == Exit.MISUSE


@pytest.mark.parametrize(("share", "code"), [(0.1, Exit.OK), (0.2, Exit.OK), (0.21, Exit.PARTIAL)])
def test_too_many_failures_have_their_own_exit_code(
    share: float, code: Exit, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    result = job.Result(failed_share={Stage.INDEX: 0.0, Stage.PERCEIVE: share})
    monkeypatch.setattr(job, "build", lambda *_, **__: result)
    assert main(["build", "--source", "x", "--out", str(tmp_path)]) == code


def test_an_interrupted_run_has_its_own_exit_code(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(job, "build", interrupt)
    assert main(["build", "--source", "x", "--out", str(tmp_path)]) == Exit.INTERRUPTED
    assert "the same command goes on" in capsys.readouterr().err


def test_validate_tells_sound_from_damaged(
    corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["validate", str(corpus)]) == Exit.OK
    assert "0 problems; checked 2 clips" in capsys.readouterr().out
    (tmp_path / "_staging").mkdir()  # a run that has not finished
    assert main(["validate", str(tmp_path)]) == Exit.ERROR
    assert "is missing" in capsys.readouterr().out


def test_a_twin_is_shown_by_the_beginning_of_its_id(corpus: Path, capsys: pytest.CaptureFixture[str]) -> None:
    manifest = json.loads((corpus / "manifest.json").read_text())
    assert manifest["counts"]["twins"] == 2
    assert main(["twin", "show", "", "--out", str(corpus)]) == Exit.MISUSE
    shown = capsys.readouterr().err
    clip_id = shown.rpartition(": ")[2].split(",")[0].strip()
    assert main(["twin", "show", clip_id, "--out", str(corpus), "--json"]) == Exit.OK
    twin = json.loads(capsys.readouterr().out)
    assert twin["clip_id"] == clip_id
    assert len(twin["frames"]) == 4
    assert main(["twin", "show", clip_id, "--out", str(corpus)]) == Exit.OK
    assert "1: square, seen on 4 frames" in capsys.readouterr().out


def test_finalise_of_a_whole_staging_needs_no_ray(corpus: Path, tmp_path: Path) -> None:
    config_file = tmp_path / "c.yaml"
    manifest = json.loads((corpus / "manifest.json").read_text())
    config_file.write_text(json.dumps(manifest["config"]))  # JSON is YAML
    (corpus / "manifest.json").unlink()
    assert main(["finalise", "--config", str(config_file), "--out", str(corpus)]) == Exit.OK
    again = json.loads((corpus / "manifest.json").read_text())
    assert again["tables"] == manifest["tables"]


def test_a_reader_that_leaves_early_is_no_error(corpus: Path) -> None:
    command = f"{sys.executable} -m rvt_ray.cli validate {corpus} | true"
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command], capture_output=True, text=True, check=False
    )
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("command", ["build", "perceive", "generate", "finalise"])
@pytest.mark.parametrize(
    ("content", "says"),
    [
        (None, "cannot read"),
        (b"kinds: {}", "not JSON"),
        (b"\xff\xfe", "not UTF-8"),
        (
            b'{"kinds": {"cat": {"synonym": ["tom"]}}}',
            "unknown key 'kinds.cat.synonym'; did you mean 'synonyms'",
        ),
        (b'{"kinds": {"cat": {"functions": ["purring"]}}}', "kind 'cat' has function 'purring'"),
    ],
    ids=["missing", "no-json", "no-text", "wrong-key", "undefined"],
)
def test_a_bad_lexicon_is_refused_before_anything_is_perceived(
    command: str, content: bytes | None, says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, out = tmp_path / "mine.json", tmp_path / "out"
    if content is not None:
        path.write_bytes(content)
    source = ["--source", str(make_videos(tmp_path / "v", 1))] if command in ("build", "perceive") else []
    words = [command, *source, "--out", str(out), "--set", f"generate.queries.lexicon={path}"]
    assert main(words) == Exit.MISUSE
    said = capsys.readouterr().err
    assert f"generate.queries.lexicon: {'cannot read ' if content is None else ''}{path}" in said
    assert says in said
    assert not list(out.rglob("*.parquet"))
    path.write_text("{}")  # the same process reads it again
    main(["finalise", "--out", str(out), "--set", f"generate.queries.lexicon={path}"])
    assert "nothing was staged here yet" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words",
    [
        ["show", "{path}"],
        ["audit", "{path}"],
        ["validate", "{path}"],
        ["twin", "show", "x", "--out", "{path}"],
        ["solve", "--corpus", "{path}", "--out", "{path}-answers"],
        ["evaluate", "{path}", "{path}", "--out", "{path}-report"],
    ],
    ids=lambda words: words[0],
)
@pytest.mark.parametrize(("name", "says"), [("nope", "no such folder"), ("", "not a finished corpus")])
def test_a_wrong_folder_is_misuse_and_not_an_unexpected_error(
    words: list[str], name: str, says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "mine" / name
    (tmp_path / "mine").mkdir()
    assert main([word.replace("{path}", str(path)) for word in words]) == Exit.MISUSE
    assert f"{path}: " in (said := capsys.readouterr().err)
    assert says in said
    assert [p.name for p in tmp_path.iterdir()] == ["mine"]
    assert not list((tmp_path / "mine").iterdir())


def test_a_text_file_that_is_given_as_the_video_is_misuse(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "text.mp4"
    path.write_text("not a video")
    words = ["solve", "--video", str(path), "--query", "the dog", "--out", str(tmp_path / "o")]
    assert main([*words, "--cache", str(tmp_path / "cache")]) == Exit.MISUSE
    assert f"--video {path}: " in capsys.readouterr().err
