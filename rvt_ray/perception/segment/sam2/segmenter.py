"""The `sam2` segmenter: everything on key frames, followed through the whole clip in both directions."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path

from rvt_ray.perception import detect
from rvt_ray.perception.base import Segmentation
from rvt_ray.perception.device import choose
from rvt_ray.perception.linking import LinkSettings, TrackLinker
from rvt_ray.perception.segment.sam2 import checkpoints
from rvt_ray.perception.segment.sam2.options import Sam2Options
from rvt_ray.records import ClipRecord, Coverage, ModelWeights
from rvt_ray.video.frames import FrameStream

log = logging.getLogger(__name__)

_LICENSE = "Apache-2.0"  # of the released SAM 2.1 weights


class Sam2Segmenter:
    """SAM 2.1 over whole clips, see docs/sam2.md.

    Raises:
        MissingDependencyError: torch or sam2 is not installed, or the weights are not on this machine.
        ConfigError: the weights are corrupt or foreign, the device is not there, or the detector is none.
    """

    Options = Sam2Options

    def __init__(self, options: Sam2Options | None = None) -> None:
        self._options = options or Sam2Options()
        path = self.preflight(self._options)
        from rvt_ray.perception.segment.sam2.automatic import AutomaticMasks, GridSettings
        from rvt_ray.perception.segment.sam2.network import Network
        from rvt_ray.perception.segment.sam2.passes import PassSettings

        o = self._options
        device, dtype = choose(o.device, o.dtype, "bfloat16", "perceive.segment.options")
        model, variant = checkpoints.load(path, o.model, o.image_size, o.max_cond_frames)
        model_id = f"{checkpoints.catalogue_name(variant.name)}@{checkpoints.digest(path)}"
        self.name = f"sam2:{model_id}"
        self._network = Network(model, device, dtype, o.memory_dtype, o.compile)
        grid = GridSettings(
            points_per_side=o.points_per_side,
            min_quality=o.min_quality,
            min_stability=o.min_stability,
            min_area_share=o.min_area_share,
            max_area_share=o.max_area_share,
            min_fragment_share=o.min_fragment_share,
            max_hole_share=o.max_hole_share,
            same_iou=o.same_iou,
        )
        self._automatic = AutomaticMasks(self._network, grid, o.prompts_per_batch)
        self._detector: detect.Detector | None = None
        if o.detector is not None:
            self._detector = detect.build(o.detector)
            self.name += f"+{self._detector.name}"
        # Whose licence a file has that the user named, nobody can tell.
        own = ModelWeights(
            part="segment", model=model_id, license=_LICENSE if o.checkpoint is None else "unknown"
        )
        self.weights = (own, *getattr(self._detector, "weights", ()))
        self._passes = PassSettings(
            frames_per_batch=o.frames_per_batch or (1 if device == "cpu" else 8),
            objects_per_batch=o.objects_per_batch,
            window=o.window,
            lost_frames=o.lost_frames,
            min_fragment_share=o.min_fragment_share,
            max_hole_share=o.max_hole_share,
            min_box_score=o.min_box_score,
        )
        log.info("sam2: %s from %s on %s in %s", variant.name, path, device, dtype)

    @classmethod
    def preflight(cls, options: Sam2Options) -> Path:
        """Whether packages and weights are there, without loading them; gives the weights file.

        Raises:
            MissingDependencyError, ConfigError: as the constructor.
        """
        checkpoints.require_packages()
        if options.detector is not None:
            detect.preflight(options.detector)
        return checkpoints.locate(options.checkpoint, options.model)

    def segment(self, clip: ClipRecord, frames: FrameStream, key_frames: Sequence[int]) -> Segmentation:
        """See `rvt_ray.perception.base.Segmenter`."""
        from rvt_ray.perception.segment.sam2.passes import Passes

        passes = Passes(self._network, frames, self._passes)
        links = LinkSettings(max_objects=self._options.max_objects, correct=self._options.correct)
        linker = TrackLinker(frames.height, frames.width, frames.num_frames, links)
        proposals = passes.find(self._automatic, key_frames, self._detector)
        sights, starts = passes.forward(linker, proposals)
        if self._options.reverse:
            passes.backward(sights, starts)
        tracks = linker.finish(sights)
        log.debug(
            "clip %s: %d masks on %d key frames, %d followed, %d tracks",
            clip.clip_id,
            sum(map(len, proposals.values())),
            len(proposals),
            len(sights),
            len(tracks),
        )
        # A grid of points with filters for size, score and number leaves things out, and nothing says which.
        return Segmentation(tracks=tracks, key_frames=list(key_frames), coverage=Coverage.SOME)
