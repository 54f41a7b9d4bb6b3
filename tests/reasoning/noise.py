"""What perception does to a twin, at stated rates, and two-valued facts to compare with."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rvt_ray.config.settings import FactSettings
from rvt_ray.masks import rle as rle_codec
from rvt_ray.reasoning import Candidate, execute
from rvt_ray.records import Absence, DigitalTwin, Scored, TrackStatus
from rvt_ray.twin.facts import Facts, Table
from rvt_ray.twin.facts.logic import bits
from tests.twin.facts.worlds import KINDS, box_rle


@dataclass(frozen=True)
class Noise:
    """Rates of each kind of error.

    Attributes:
        mask_px: standard deviation of each box edge per frame.
        depth: standard deviation of depth, as a share of the scene's range.
        label: share of instances that are misnamed, with a score of 0.4..0.8; a vote over frames leaves
            the true name as an alternative four times out of five.
        colour: share of instances whose colour is read as another, with a middling score.
        drop: share of frames on which a mask is lost, with the reason unknown.
        ghost: share of confirmed instances that become uncertain tracks.
    """

    mask_px: float = 2.0
    depth: float = 0.02
    label: float = 0.01
    colour: float = 0.02
    drop: float = 0.02
    ghost: float = 0.05


def disturb(clean: DigitalTwin, noise: Noise, seed: int) -> DigitalTwin:
    """A twin as perception would give it."""
    rng = np.random.default_rng(seed)
    twin = clean.model_copy(deep=True)
    depths = [d for i in twin.instances for d in i.track.depth_median if d is not None]
    span = max(depths) - min(depths) if depths else 1.0
    for instance in twin.instances:
        _disturb_masks(instance.track, twin, noise, rng)
        for t, depth in enumerate(instance.track.depth_median):
            if depth is not None:
                shift = rng.normal(0, noise.depth * span)
                for name in ("median", "p10", "p90"):
                    getattr(instance.track, f"depth_{name}")[t] += shift
        if instance.category != "object":
            _disturb_name(instance, noise, rng)
        for a in instance.attributes:
            if a.name == "colour":
                a.source = "measured"
                if rng.random() < noise.colour:
                    a.value = str(rng.choice([c for c in ("red", "green", "blue", "yellow") if c != a.value]))
                    a.score = float(rng.uniform(0.45, 0.75))
                else:
                    a.score = float(rng.uniform(0.65, 1.0))
        if rng.random() < noise.ghost:
            instance.quality.status = TrackStatus.UNCERTAIN
    return twin


def _disturb_name(instance, noise: Noise, rng: np.random.Generator) -> None:
    true = instance.category
    wrong = str(rng.choice([k for k in KINDS if k != true]))
    if rng.random() < noise.label:
        instance.category = wrong
        score = float(rng.uniform(0.4, 0.8))
        rest = 1 - score if rng.random() < 0.8 else 0.0
        instance.alternatives = [Scored(value=wrong, score=score), Scored(value=true, score=rest)]
    else:
        score = float(rng.uniform(0.7, 1.0))
        instance.alternatives = [Scored(value=true, score=score), Scored(value=wrong, score=(1 - score) / 2)]


def _disturb_masks(track, twin: DigitalTwin, noise: Noise, rng: np.random.Generator) -> None:
    for t in range(len(track.frame_idx)):
        if not track.visible[t]:
            continue
        if rng.random() < noise.drop:
            track.visible[t], track.absence[t] = False, Absence.UNKNOWN
            track.rle[t] = rle_codec.empty(twin.height, twin.width)
            for name in type(track).model_fields:
                if name not in ("frame_idx", "visible", "absence", "rle"):
                    getattr(track, name)[t] = 0.0 if name == "area" else None
            continue
        x, y = track.box_x[t], track.box_y[t]
        edges = np.array([x, y, x + track.box_w[t], y + track.box_h[t]])
        x0, y0, x1, y1 = np.round(edges + rng.normal(0, noise.mask_px, 4)).astype(int)
        x0, y0 = int(np.clip(x0, 0, twin.width - 2)), int(np.clip(y0, 0, twin.height - 2))
        x1, y1 = int(np.clip(x1, x0 + 1, twin.width)), int(np.clip(y1, y0 + 1, twin.height))
        track.rle[t] = box_rle(x0, y0, x1, y1, twin.width, twin.height)
        track.box_x[t], track.box_y[t] = float(x0), float(y0)
        track.box_w[t], track.box_h[t] = float(x1 - x0), float(y1 - y0)
        track.area[t] = float((x1 - x0) * (y1 - y0))
        track.centroid_x[t], track.centroid_y[t] = (x0 + x1 - 1) / 2, (y0 + y1 - 1) / 2


class TwoValued(Facts):
    """What a system without "unknown" believes: no margins, what cannot be shown is false, every track and
    every best name is taken at its word."""

    def __init__(self, twin: DigitalTwin, settings: FactSettings) -> None:
        plain = twin.model_copy(deep=True)
        for instance in plain.instances:
            instance.quality.status = TrackStatus.CONFIRMED
            instance.alternatives = [Scored(value=instance.category, score=1.0)]
            for a in instance.attributes:
                a.score, a.source = 1.0, "annotation"
        bare = settings.model_copy(
            update={
                "relation_margin": 1e-9,
                "region_margin": 0.0,
                "region_share": 1 / 3,
                "overlap_share": 1.0,
                "near_margin": 0.0,
                "touch_margin_px": 0.0,
                "depth_margin": 1e-9,
                "size_ratio": 1 + 1e-9,
                "speed_ratio": 1 + 1e-9,
                "share_true": 0.51,
                "min_frames": 1,
                "event_s": 0.0,
                "move_shift": settings.still_shift,
                "move_speed": settings.still_speed,
            }
        )
        super().__init__(plain, bare)
        self.confirmed_bits = bits(np.ones(len(self.ids), bool))

    def table(self, predicate: str, value: str | None = None, scope: str | None = None) -> Table:
        found = super().table(predicate, value, scope)
        found.truth[found.truth == 0] = -1
        return found


def is_wrong(candidate: Candidate, clean: Facts) -> bool:
    """Whether the targets cannot be the truth on the undisturbed twin: something that surely fits is
    missing, or something that surely does not fit is in."""
    truth = execute(candidate.program, clean)
    given = set(candidate.target_ids)
    return not (truth.certain <= given <= truth.possible)
