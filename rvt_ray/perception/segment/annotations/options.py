"""Options of the `annotations` segmenter."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from rvt_ray.backends import Options


class AnnotationOptions(Options):
    """How to read masks that already exist.

    Attributes:
        png_frames: `order`: the n-th PNG is the video's n-th frame; `names`: a PNG's number is its frame
            (sparse annotations, e.g. every fifth frame).
        void_id: pixel value of a label map that means "do not care"; null: every value is an object.
        sav_masklets: which file to take where a folder holds `<name>_manual.json` and `<name>_auto.json`.
        sav_stride: video frames between annotated ones; null: from the file's own frame count (SA-V: 4).
        exhaustive: whether the masks are of every thing that can be seen, so that one may ask how many there
            are and whether there is none (`coverage` of the twin); null: of rendered truth yes, of masks that
            somebody drew no (DAVIS, SA-V and YouTube-VIS annotate the main actors, or some kinds).
    """

    png_frames: Literal["order", "names"] = "order"
    void_id: int | None = 255
    sav_masklets: Literal["manual", "auto"] = "manual"
    sav_stride: int | None = Field(default=None, ge=1)
    exhaustive: bool | None = None
