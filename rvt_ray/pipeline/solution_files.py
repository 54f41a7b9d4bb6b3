"""A video's answer to look at: solution.json, an overlay video per clip, and a static page."""

from __future__ import annotations

import json
import logging
import os
import shutil
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import jinja2
import numpy as np

from rvt_ray.config import Config
from rvt_ray.gallery.draw import Shape, highlighted, save_jpeg
from rvt_ray.gallery.write import TEMPLATES as GALLERY
from rvt_ray.masks import rle
from rvt_ray.pipeline.solve_video import ClipAnswer
from rvt_ray.video import open_clip

logger = logging.getLogger(__name__)

MAX_SIDE = 960
_STILLS = 4
_TIME_BASE = Fraction(1, 90_000)


def write_solution(answers: Sequence[ClipAnswer], config: Config, out: Path) -> Path:
    """Write `solution.json`, `index.html`, and per clip an overlay video and stills; returns the page.

    The overlay dims everything but the targets, on the clip's own time line.

    Raises:
        ClipError: the video can no longer be decoded.
        OSError: `out` cannot be written.
    """
    out.mkdir(parents=True, exist_ok=True)
    (out / "solution.json").write_text(
        json.dumps([_record(a) for a in answers], ensure_ascii=False, indent=1) + "\n", encoding="utf-8"
    )
    cards = [_card(answer, config, out) for answer in answers]
    shutil.copyfile(GALLERY / "gallery.css", out / "gallery.css")
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,  # queries and names are other people's
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    page = out / "index.html"
    trace = answers[0].solution.trace
    page.write_text(
        environment.get_template("solution.html.j2").render(
            query=trace.query, choices=trace.choices, name=answers[0].clip.name, cards=cards
        ),
        encoding="utf-8",
    )
    return page


def _record(answer: ClipAnswer) -> dict[str, Any]:
    clip = answer.clip
    return {
        "clip_id": clip.clip_id,
        "uri": clip.uri,
        "start_frame": clip.start_frame,
        "num_frames": clip.num_frames,
        "size": [clip.height, clip.width],
        "solution": answer.solution.model_dump(mode="json"),
    }


def _card(answer: ClipAnswer, config: Config, out: Path) -> dict[str, Any]:
    clip = answer.clip
    video = f"{clip.clip_id}.mp4"
    stills = _draw(answer, config, out, video)
    times = clip.pts_s
    return {"answer": answer, "video": video, "stills": stills, "span": (times[0], times[-1])}


def _draw(answer: ClipAnswer, config: Config, out: Path, video: str) -> list[dict[str, Any]]:
    """Write the overlay video and stills of one clip, in one pass over its frames."""
    clip, solution = answer.clip, answer.solution
    tracks = {i: answer.twin.instance(i).track for i in solution.target_ids}
    at = {i: {f: k for k, f in enumerate(t.frame_idx)} for i, t in tracks.items()}
    seen = [
        f for f in range(clip.num_frames) if any(f in at[i] and tracks[i].visible[at[i][f]] for i in tracks)
    ]
    span = seen or list(range(clip.num_frames))
    wanted = {span[round(k * (len(span) - 1) / (_STILLS - 1))] for k in range(_STILLS)}
    stills: list[dict[str, Any]] = []
    partial = out / f".{video}.part.mp4"
    frames = open_clip(clip, config.index)
    try:
        with av.open(str(partial), "w") as container:
            stream: Any = None
            for window in frames.windows():
                for index, frame in zip(window.indices.tolist(), window.frames, strict=True):
                    shapes = []
                    for i, track in tracks.items():
                        text = track.rle[at[i][index]] if index in at[i] else None
                        if text is not None:
                            shapes.append(Shape(i, rle.decode(text, clip.height, clip.width)))
                    boxes = solution.boxes[index] if solution.boxes is not None else []
                    image = highlighted(frame, shapes, None, boxes, MAX_SIDE)
                    if index in wanted:
                        name = f"{clip.clip_id}-{index:05d}.jpg"
                        save_jpeg(out / name, image)
                        stills.append({"file": name, "frame": index, "time": clip.pts_s[index]})
                    image = np.ascontiguousarray(image[: image.shape[0] // 2 * 2, : image.shape[1] // 2 * 2])
                    if stream is None:
                        stream = _stream(container, image, clip.fps_nominal)
                    picture = av.VideoFrame.from_ndarray(image, format="rgb24")
                    picture.pts = round((clip.pts_s[index] - clip.pts_s[0]) / _TIME_BASE)
                    picture.time_base = _TIME_BASE
                    container.mux(stream.encode(picture))
            if stream is not None:
                container.mux(stream.encode(None))
    finally:
        frames.close()
    os.replace(partial, out / video)
    return stills


def _stream(container: Any, image: np.ndarray, fps: float | None) -> Any:
    stream = container.add_stream("libx264", rate=Fraction(fps or 25.0).limit_denominator(30_030))
    stream.height, stream.width = image.shape[:2]
    stream.pix_fmt = "yuv420p"
    stream.time_base = stream.codec_context.time_base = _TIME_BASE
    stream.options = {"crf": "20", "preset": "veryfast"}
    return stream
