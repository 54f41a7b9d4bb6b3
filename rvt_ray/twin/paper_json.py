"""The paper's JSON form of a twin: J = {J(1), ..., J(T)}, one entry per frame.

The table keeps one track per instance, which is what facts are computed from. The paper describes the same
content frame by frame, which is what a person or an LLM reads. Both hold the same: the conversion loses
nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rvt_ray.records import Coverage, DepthStep, DigitalTwin, Instance, Scene

FORMAT = "rvt-paper-json-1"

_GROUPS = {
    "bbox": ("box_x", "box_y", "box_w", "box_h"),
    "centroid": ("centroid_x", "centroid_y"),
    "velocity": ("velocity_x", "velocity_y"),
}
_DEPTH = ("median", "mean", "std", "p10", "p90", "min", "max")


def to_paper_json(twin: DigitalTwin) -> dict[str, Any]:
    """The twin as plain data that `json.dumps` takes.

    Each frame holds its time, the camera's step, the frame operators' measures, how its depth compares with
    other frames', whether it is a key frame, and the instances annotated on it: visibility, mask (`size`,
    `counts`), bbox [x, y, w, h], centroid, velocity (px/s), area, `beta` (the confidence) and depth
    statistics. What holds for the whole clip (scene, categories, attributes, captions) stands once, beside
    the frames.
    """
    data = twin.model_dump(mode="json")
    camera = data["scene"].pop("camera")
    measures = data["frame_measures"]
    depth_of = {step.pop("frame_idx"): step for step in data["depth_alignment"]}
    keys = set(twin.key_frames)
    frames: list[dict[str, Any]] = [
        {
            "frame": i,
            "time_s": twin.pts_s[i],
            "key_frame": i in keys,
            "camera": camera[i] if i < len(camera) else None,
            "measures": measures[i] if i < len(measures) else None,
            "depth_alignment": depth_of.get(i),
            "instances": [],
        }
        for i in range(twin.num_frames)
    ]
    for instance in data["instances"]:
        track = instance.pop("track")
        for i, frame in enumerate(track["frame_idx"]):
            frames[frame]["instances"].append(_entry(twin, instance["instance_id"], track, i))
    return {
        "format": FORMAT,
        "clip_id": data["clip_id"],
        "size": [twin.height, twin.width],
        "num_frames": twin.num_frames,
        "depth_kind": data["depth_kind"],
        "scene": data["scene"],
        "instances": data["instances"],
        "frames": frames,
        "provenance": data["provenance"],
        "flags": data["flags"],
        "weights": data["weights"],
        "coverage": data["coverage"],
    }


def _entry(twin: DigitalTwin, instance_id: int, track: Mapping[str, Any], i: int) -> dict[str, Any]:
    text = track["rle"][i]
    depth = {name: track[f"depth_{name}"][i] for name in _DEPTH}
    return {
        "instance_id": instance_id,
        "visible": track["visible"][i],
        "absence": track["absence"][i],
        "mask": None if text is None else {"size": [twin.height, twin.width], "counts": text},
        **{group: _join([track[name][i] for name in names]) for group, names in _GROUPS.items()},
        "area": track["area"][i],
        "beta": track["score"][i],
        "depth": None if all(v is None for v in depth.values()) else depth,
    }


def _join(values: list[float | None]) -> list[float | None] | None:
    return None if all(v is None for v in values) else values


def from_paper_json(data: Mapping[str, Any]) -> DigitalTwin:
    """The twin that `to_paper_json` was given.

    Raises:
        ValueError: another format, or a field is missing or of the wrong kind (pydantic's ValidationError
            is a ValueError).
    """
    if data.get("format") != FORMAT:
        raise ValueError(
            f"not a twin in the paper's JSON form: 'format' is {data.get('format')!r}, not {FORMAT!r}; "
            "`rvt-ray twin show CLIP --json` writes it"
        )
    try:
        height, width = data["size"]
        frames = data["frames"]
        tracks: dict[int, dict[str, list[Any]]] = {
            item["instance_id"]: _empty_track() for item in data["instances"]
        }
        for frame in frames:
            for entry in frame["instances"]:
                _append(tracks[entry["instance_id"]], frame["frame"], entry)
        camera = [f["camera"] for f in frames if f["camera"] is not None]
        return DigitalTwin(
            clip_id=data["clip_id"],
            width=width,
            height=height,
            num_frames=data["num_frames"],
            pts_s=[f["time_s"] for f in frames],
            depth_kind=data["depth_kind"],
            scene=Scene.model_validate({**data["scene"], "camera": camera}),
            key_frames=[f["frame"] for f in frames if f["key_frame"]],
            instances=[
                Instance.model_validate({**item, "track": tracks[item["instance_id"]]})
                for item in data["instances"]
            ],
            provenance=data["provenance"],
            depth_alignment=[
                DepthStep.model_validate({**f["depth_alignment"], "frame_idx": f["frame"]})
                for f in frames
                if f.get("depth_alignment") is not None
            ],
            frame_measures=[f["measures"] for f in frames if f.get("measures") is not None],
            flags=data.get("flags", []),
            weights=data.get("weights", []),
            coverage=data.get("coverage") or Coverage.SOME,
        )
    except KeyError as error:
        raise ValueError(f"a twin in the paper's JSON form lacks {error.args[0]!r}") from error


def _empty_track() -> dict[str, list[Any]]:
    names = ["frame_idx", "visible", "absence", "rle", "area", "score"]
    names += [name for group in _GROUPS.values() for name in group]
    names += [f"depth_{name}" for name in _DEPTH]
    return {name: [] for name in names}


def _append(track: dict[str, list[Any]], frame: int, entry: Mapping[str, Any]) -> None:
    track["frame_idx"].append(frame)
    track["visible"].append(entry["visible"])
    track["absence"].append(entry["absence"])
    track["rle"].append(None if entry["mask"] is None else entry["mask"]["counts"])
    for group, names in _GROUPS.items():
        values = entry[group] if entry[group] is not None else [None] * len(names)
        for name, value in zip(names, values, strict=True):
            track[name].append(value)
    track["area"].append(entry["area"])
    track["score"].append(entry["beta"])
    depth = entry["depth"] or {}
    for name in _DEPTH:
        track[f"depth_{name}"].append(depth.get(name))
