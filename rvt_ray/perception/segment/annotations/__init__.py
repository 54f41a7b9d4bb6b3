"""The `annotations` segmenter: masks that already exist, in the formats that people have them in."""

from __future__ import annotations

from collections.abc import Sequence

from rvt_ray.backends import nearest
from rvt_ray.perception.base import Segmentation
from rvt_ray.perception.files import bad_annotation
from rvt_ray.perception.segment.annotations import davis, sav, synthetic, youtube_vis
from rvt_ray.perception.segment.annotations.common import Reader
from rvt_ray.perception.segment.annotations.options import AnnotationOptions
from rvt_ray.records import ClipRecord, Coverage
from rvt_ray.video.frames import FrameStream

READERS: dict[str, Reader] = {
    "davis": davis.read,
    "sav": sav.read,
    "synthetic": synthetic.read,
    "youtube_vis": youtube_vis.read,
}
EXHAUSTIVE = frozenset({"synthetic"})
"""Formats that annotate every thing of the picture."""


class AnnotationsSegmenter:
    """Reads the tracks that belong to a clip; looks at no pixel of it.

    Frames that the format leaves unannotated are left out of the tracks; masks of a scaled video are scaled
    with it (nearest neighbour).
    """

    name = "annotations"
    Options = AnnotationOptions

    def __init__(self, options: AnnotationOptions | None = None) -> None:
        self._options = options or AnnotationOptions()

    def segment(self, clip: ClipRecord, frames: FrameStream, key_frames: Sequence[int]) -> Segmentation:
        """The annotated tracks of the clip's span.

        Raises:
            ClipError: BAD_ANNOTATION; names the file, the field and the remedy.
        """
        if clip.annotation_uri is None or clip.annotation_format is None:
            raise bad_annotation(
                clip.uri,
                "no annotations belong to this video; give its source 'annotations' and 'annotation_format', "
                "or choose another perceive.segment.backend",
            )
        reader = READERS.get(clip.annotation_format)
        if reader is None:
            hint = nearest(clip.annotation_format, list(READERS))
            raise bad_annotation(
                clip.annotation_uri, f"unknown annotation_format {clip.annotation_format!r}; {hint}"
            )
        tracks = reader(clip, clip.annotation_uri, self._options)
        exhaustive = self._options.exhaustive
        if exhaustive is None:
            exhaustive = clip.annotation_format in EXHAUSTIVE
        coverage = Coverage.EVERYTHING if exhaustive else Coverage.SOME
        return Segmentation(tracks=tracks, key_frames=list(key_frames), coverage=coverage)
