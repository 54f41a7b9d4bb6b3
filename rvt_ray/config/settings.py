"""The settings tree. Every key that a user may set is here or in a backend's `Options`.

Grouped by the stage whose result it can change: `index`, `perceive`, `generate`; `run` holds what never
changes a result (resources, deadlines, where). Fingerprints rest on that split.
"""

from __future__ import annotations

from typing import Annotated, Literal, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from rvt_ray.backends import BackendSpec
from rvt_ray.records.enums import Task

T = TypeVar("T")


def _distinct(values: list[T]) -> list[T]:
    doubled = next((value for i, value in enumerate(values) if value in values[:i]), None)
    if doubled is not None:
        raise ValueError(f"{doubled} stands there twice; name each once")
    return values


class Settings(BaseModel):
    """Base of every node of the tree."""

    model_config = ConfigDict(extra="forbid")


class SourceSettings(Settings):
    """One place that videos come from.

    Attributes:
        type: `videos` (folder or single file), `frames` (folders of frames), `manifest`, or a dotted path.
        path: file, folder or fsspec URI.
        name: stands in every row; default: the last part of the path.
        license: SPDX id or text; stands in every clip and sample.
        annotations: existing masks for these videos, if any (folder or file).
        annotation_format: `davis`, `sav`, `youtube_vis`, `synthetic`; required with `annotations`.
        options: further options of the source class.
    """

    type: str = "auto"
    path: str
    name: str | None = None
    license: str = "unknown"
    annotations: str | None = None
    annotation_format: str | None = None
    options: dict[str, object] = Field(default_factory=dict)


class ShotSettings(Settings):
    """Shot detection (PySceneDetect). `threshold` is the detector's own unit."""

    detector: Literal["content", "adaptive", "none"] = "adaptive"
    threshold: float | None = None
    min_shot_s: float = Field(default=0.6, ge=0)


class IndexSettings(Settings):
    """Video -> clips.

    Attributes:
        decoder: `auto` is decord, verified, with PyAV for large videos and as the recorded fallback;
            `decord`, `pyav`, or a dotted path.
        decord_max_mib: `auto` gives decord only videos whose decoded frames take at most this together: it
            may hold all of them, since it decodes ahead of its reader without a bound.
        max_side: frames are scaled down so that the longer side is at most this; null keeps the size.
        max_clip_s, max_clip_frames: a longer shot is cut into equal pieces within both bounds.
        min_clip_frames: shorter shots are still clips (a one-frame video is a clip), but pieces of a shot
            are never cut shorter than this.
        max_pixels: upright frame size beyond which a video is refused.
        decode_timeout_s: a decoder that gives no frame for this long is killed.
    """

    decoder: str = "auto"
    decord_max_mib: int = Field(default=128, ge=0)
    max_side: int | None = Field(default=None, ge=16)
    max_clip_s: float = Field(default=12.0, gt=0)
    max_clip_frames: int = Field(default=400, ge=1)
    min_clip_frames: int = Field(default=8, ge=1)
    max_pixels: int = Field(default=8192 * 4320, ge=1)
    max_duration_s: float = Field(default=4 * 3600.0, gt=0)
    decode_timeout_s: float = Field(default=60.0, gt=0)
    shots: ShotSettings = Field(default_factory=ShotSettings)


class TwinSettings(Settings):
    """Assembly of the twin. Tracks below a bound are `uncertain`: in the domain, never targets."""

    min_track_frames: int = Field(default=5, ge=1)
    min_mean_score: float = Field(default=0.5, ge=0, le=1)
    min_area_fraction: float = Field(default=0.0005, ge=0, le=1)
    erode_px: int = Field(default=2, ge=0)


class AnnotatedSettings(Settings):
    """Backends for clips whose source brings annotations; null takes the one of `perceive`."""

    segment: BackendSpec | None = Field(default_factory=lambda: BackendSpec(backend="annotations"))
    depth: BackendSpec | None = None
    caption: BackendSpec | None = None


class PerceiveSettings(Settings):
    """Clip -> twin. `annotated: null` ignores annotations."""

    key_frame_interval_s: float = Field(default=1.0, gt=0)
    segment: BackendSpec = Field(default_factory=lambda: BackendSpec(backend="motion"))
    depth: BackendSpec = Field(default_factory=lambda: BackendSpec(backend="none"))
    caption: BackendSpec = Field(default_factory=lambda: BackendSpec(backend="appearance"))
    annotated: AnnotatedSettings | None = Field(default_factory=AnnotatedSettings)
    twin: TwinSettings = Field(default_factory=TwinSettings)


class FactSettings(Settings):
    """Thresholds and margins of the three-valued facts (docs/predicates.md says why each is what it is).

    A measurement between what is surely true and what is surely false is `unknown`. Lengths are in frame
    diagonals unless the name says otherwise.
    """

    min_track_score: float = Field(default=0.5, ge=0, le=1, description="masks scored below are not trusted")
    min_category_score: float = Field(default=0.6, ge=0, le=1)
    min_category_lead: float = Field(default=0.3, ge=0, le=1, description="over the best rival name")
    rival_score: float = Field(default=0.15, ge=0, le=1, description="names scored below cannot be it")
    min_attribute_score: float = Field(default=0.6, gt=0.5, le=1)
    region_share: float = Field(default=0.36, gt=0, lt=0.5, description="of the side: `left`, `top`, ...")
    region_margin: float = Field(default=0.03, ge=0, lt=0.1, description="of the side")
    relation_margin: float = Field(default=0.04, gt=0)
    overlap_share: float = Field(default=0.5, ge=0, le=1, description="of the narrower box, on one axis")
    near_distance: float = Field(default=0.08, gt=0, description="mask to mask")
    near_margin: float = Field(default=0.03, ge=0)
    touch_px: float = Field(default=2.0, ge=0, description="mask gap; 1 is: neighbouring pixels")
    touch_margin_px: float = Field(default=4.0, ge=0)
    inside_share: float = Field(default=0.95, gt=0, le=1, description="of the inner box")
    inside_margin: float = Field(default=0.2, gt=0, lt=1)
    size_ratio: float = Field(default=1.3, gt=1, description="area ratio that counts as larger")
    depth_margin: float = Field(default=0.06, gt=0, description="of the frame's depth range")
    scale_ratio: float = Field(default=1.2, gt=1, description="growth of an approaching thing")
    still_shift: float = Field(default=0.015, gt=0, description="what still counts as resting")
    move_shift: float = Field(default=0.06, gt=0, description="what surely counts as moving")
    approach_shift: float = Field(default=0.08, gt=0, description="change of a distance")
    still_speed: float = Field(default=0.015, gt=0, description="diagonals per second")
    move_speed: float = Field(default=0.05, gt=0, description="diagonals per second")
    speed_ratio: float = Field(default=1.4, gt=1)
    camera_drift: float = Field(default=0.02, ge=0, description="error per camera motion")
    smooth_s: float = Field(default=0.25, ge=0, description="smoothing of positions")
    edge_s: float = Field(default=0.5, ge=0, description="length of `start` and `end`")
    edge_share: float = Field(default=0.15, gt=0, le=0.5, description="their most, of the clip")
    edge_false: float = Field(default=0.2, ge=0, lt=1, description="share of `start` that refutes it")
    share_true: float = Field(default=0.95, gt=0.5, le=1, description="share that is `throughout`")
    share_false: float = Field(default=0.8, gt=0, le=1, description="share that no longer is")
    min_frames: int = Field(default=3, ge=1, description="of one scope, on which it must hold")
    event_s: float = Field(default=0.25, ge=0, description="shortest absence or order that counts")
    blink_s: float = Field(default=0.1, ge=0, description="absence that nobody notices")
    run_s: float = Field(default=0.5, gt=0, description="shortest rest or motion")
    edge_px: float = Field(default=2.0, ge=0, description="box to frame border that counts as cut")
    contact_frames: int = Field(default=32, ge=1, description="frames on which mask gaps are measured")


class GateSettings(Settings):
    """Each gate of `docs/gates.md`; a gate that is off says `not_run` in the row."""

    program: bool = True
    stability: bool = True
    necessity: bool = True
    leak: bool = True
    form: bool = True
    cues: bool = True
    faithful: bool = False
    shortcut: bool = True
    stability_draws: int = Field(default=20, ge=1)
    stability_share: float = Field(default=0.95, ge=0, le=1)
    opening_ngram: int = Field(default=3, ge=1)
    max_opening_share: float = Field(default=0.05, gt=0, le=1)
    max_duplicate_share: float = Field(default=0.01, ge=0, le=1)
    faithful_draws: int = Field(default=3, ge=1)


class QuerySettings(Settings):
    """What is asked of a twin."""

    tasks: Annotated[list[Task], AfterValidator(_distinct)] = Field(
        default_factory=lambda: list(Task), min_length=1
    )
    levels: Annotated[list[Annotated[int, Field(ge=1, le=4)]], AfterValidator(_distinct)] = Field(
        default_factory=lambda: [1, 2, 3, 4], min_length=1
    )
    targets_per_clip: int = Field(default=4, ge=1, description="things and groups that some program finds")
    samples_per_clip: int = Field(default=16, ge=1)
    no_target_share: float = Field(default=0.07, ge=0, le=0.5)
    paraphrases: int = Field(default=2, ge=0, le=5)
    lexicon: str | None = None


class LlmSettings(Settings):
    """Who words the queries. `template` needs no model.

    `style`: `free` gives the model the clue and lets it find its own words; `rewrite` gives it a template
    sentence to put into other words; `guided` lets it choose its words, but only among sentences that
    say the program, which is all that a very small model can do well. `guided` sets its own token limit.
    """

    backend: str = "template"
    options: dict[str, object] = Field(default_factory=dict)
    cache: str | None = Field(default=None, description="folder of the reply cache; null: no cache")
    style: Literal["free", "rewrite", "guided"] = "free"
    max_tries: int = Field(default=2, ge=1)
    temperature: float = Field(default=0.7, ge=0)
    max_tokens: int = Field(default=200, ge=16)
    task_choice: bool = True


class GenerateSettings(Settings):
    """Twin -> samples."""

    facts: FactSettings = Field(default_factory=FactSettings)
    queries: QuerySettings = Field(default_factory=QuerySettings)
    gates: GateSettings = Field(default_factory=GateSettings)
    llm: LlmSettings = Field(default_factory=LlmSettings)


class AgentLlmSettings(LlmSettings):
    """As `generate.llm`, but greedy: plans are not meant to vary. `max_tokens` bounds a plan; `task_choice`
    lets the model say what kind of question it is; `agent.max_revisions` takes the place of `max_tries`."""

    temperature: float = Field(default=0.0, ge=0)
    max_tokens: int = Field(default=500, ge=16)


class AgentSettings(Settings):
    """RVTagent: how queries are answered (docs/agent.md). Facts and lexicon are those of `generate`.

    Attributes:
        planner: `rules` parses the query without a model; `llm` lets the model write the program; `auto`
            asks the model only where the rules do not understand every word.
        twin: `corpus` reads the corpus's twins, `own` perceives the clips afresh with the `perceive`
            settings and never looks at annotations.
        llm: the agent's own model; `template` is none.
        max_revisions: further plans after one that finds nothing or too much.
        direct_choice: as a last resort the model picks instances by their ids.
        seed: of the model's sampling.
    """

    planner: Literal["auto", "rules", "llm"] = "auto"
    twin: Literal["corpus", "own"] = "corpus"
    llm: AgentLlmSettings = Field(default_factory=AgentLlmSettings)
    max_revisions: int = Field(default=2, ge=0, le=10)
    direct_choice: bool = True
    seed: int = 0


class PoolSettings(Settings):
    """An actor pool. `num_gpus` above 1 must be whole (Ray)."""

    actors: int = Field(default=1, ge=1)
    num_cpus: float = Field(default=1.0, gt=0)
    num_gpus: float = Field(default=0.0, ge=0)
    memory_gb: float | None = Field(default=None, gt=0)


class RunSettings(Settings):
    """How and where; never what. Not part of any fingerprint.

    Attributes:
        address: Ray address; `local` starts a Ray for this run, `auto` joins the cluster that a job runs in.
        clip_timeout_s: the deadline of one clip in one stage.
        max_attempts: starts of a clip that kills its worker before it becomes a failure.
        max_failed_share: above this share of failures the command exits with the partial-failure code.
        in_flight: twins in flight in one caption, generate or solve actor; null: several where a model is
            waited for, else one (more would only fight for the interpreter).
    """

    address: str = "local"
    num_cpus: int | None = Field(default=None, ge=1)
    index: PoolSettings = Field(default_factory=PoolSettings)
    perceive: PoolSettings = Field(default_factory=PoolSettings)
    caption: PoolSettings = Field(default_factory=PoolSettings)
    generate: PoolSettings = Field(default_factory=PoolSettings)
    solve: PoolSettings = Field(default_factory=PoolSettings)
    clip_timeout_s: float = Field(default=1800.0, gt=0)
    max_attempts: int = Field(default=3, ge=1)
    max_failed_share: float = Field(default=0.2, ge=0, le=1)
    in_flight: int | None = Field(default=None, ge=1)
    rows_per_shard: int = Field(default=2000, ge=1)
    shard_mb: float = Field(default=256.0, gt=0)


class Config(Settings):
    """The whole tree."""

    seed: int = 0
    sources: list[SourceSettings] = Field(default_factory=list)
    index: IndexSettings = Field(default_factory=IndexSettings)
    perceive: PerceiveSettings = Field(default_factory=PerceiveSettings)
    generate: GenerateSettings = Field(default_factory=GenerateSettings)
    agent: AgentSettings = Field(default_factory=AgentSettings)
    run: RunSettings = Field(default_factory=RunSettings)
