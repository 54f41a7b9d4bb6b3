"""The `annotations` captioner: passes on the words that came with the masks, and adds none."""

from __future__ import annotations

from collections.abc import Sequence

from rvt_ray.backends import Options
from rvt_ray.perception.base import Captions, InstanceCaption, Segmentation, TrackDraft
from rvt_ray.records import CameraStep, ClipRecord, Scored
from rvt_ray.video.frames import FrameStream

_UNNAMED = "object"  # formats without labels
_ORDER = ("size", "colour", "material")  # as English orders them


class AnnotationsCaptionerOptions(Options):
    """It takes none."""


class AnnotationsCaptioner:
    """Category and attributes of each track as given; looks at no pixel."""

    name = "annotations"
    Options = AnnotationsCaptionerOptions

    def __init__(self, options: AnnotationsCaptionerOptions | None = None) -> None:
        del options

    def caption(
        self,
        clip: ClipRecord,
        frames: FrameStream,
        segmentation: Segmentation,
        camera: Sequence[CameraStep],
    ) -> Captions:
        """One caption per track; a track without a label is an "object" with no claimed category score."""
        instances = [_caption(track) for track in segmentation.tracks]
        kinds = sorted({t.category for t in segmentation.tracks if t.category is not None})
        scene = "; ".join(i.caption for i in instances)
        return Captions(scene=scene, tags=kinds, instances=instances)


def _caption(track: TrackDraft) -> InstanceCaption:
    category = track.category or _UNNAMED
    # `medium` says nothing to a reader.
    given = {a.name: a.value for a in track.attributes if a.value != "medium"}
    words = [given[name] for name in _ORDER if name in given] + [category]
    article = "an" if words[0][0] in "aeiou" else "a"
    return InstanceCaption(
        instance_id=track.instance_id,
        category=category,
        alternatives=[] if track.category is None else [Scored(value=category, score=track.category_score)],
        attributes=list(track.attributes),
        caption=" ".join([article, *words]),
    )
