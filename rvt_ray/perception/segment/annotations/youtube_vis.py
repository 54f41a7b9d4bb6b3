"""YouTube-VIS (and OVIS, UVO): one json with videos, categories and one annotation per object."""

from __future__ import annotations

from typing import Any

from rvt_ray.masks.coco import from_polygons, from_segmentation
from rvt_ray.perception.base import TrackDraft
from rvt_ray.perception.files import bad_annotation, find, read_json, video_names
from rvt_ray.perception.segment.annotations.common import Label, TrackCollector, fit
from rvt_ray.perception.segment.annotations.options import AnnotationOptions
from rvt_ray.records import ClipRecord, TrackStatus


def read(clip: ClipRecord, uri: str, options: AnnotationOptions) -> list[TrackDraft]:
    """Tracks of a clip. Instance ids are the file's annotation ids. The n-th entry of `segmentations` is the
    video's n-th frame; null means that the object is not on that frame. Crowds are `uncertain`.

    Raises:
        ClipError: no such file, the video is not in it, or a field is missing or wrong.
    """
    file = find(clip, uri, [".json"], "YouTube-VIS json")
    data = read_json(file)
    for key in ("videos", "annotations", "categories"):
        if not isinstance(data, dict) or not isinstance(data.get(key), list):
            raise bad_annotation(file, f"'{key}' must be a list: is this a YouTube-VIS file?")
    try:
        video = _video(file, data["videos"], clip)
        names = {c["id"]: str(c["name"]) for c in data["categories"]}
        # null: the test sets of the family come without truth.
        items = [a for a in data["annotations"] or [] if a["video_id"] == video["id"]]
        return _tracks(clip, file, video, items, names)
    except (KeyError, TypeError) as error:
        raise bad_annotation(file, f"a field is missing or of the wrong kind: {error!r}") from error


def _tracks(
    clip: ClipRecord, file: str, video: dict[str, Any], items: list[dict[str, Any]], names: dict[Any, str]
) -> list[TrackDraft]:
    length = int(video.get("length") or max((len(a["segmentations"]) for a in items), default=0))
    height, width = int(video["height"]), int(video["width"])
    collector = TrackCollector(clip)
    labels: dict[int, Label] = {}
    frames = {n: f for n in range(length) if (f := collector.clip_frame(n)) is not None}
    for frame in frames.values():
        collector.annotated(frame)
    for item in items:
        instance_id, where = item["id"], f"annotations[id {item['id']}]"
        if not isinstance(instance_id, int) or instance_id < 1 or instance_id in labels:
            raise bad_annotation(file, f"{where}: ids must be distinct integers >= 1 inside a video")
        if item["category_id"] not in names:
            raise bad_annotation(file, f"{where}.category_id: {item['category_id']} is not in 'categories'")
        crowd = TrackStatus.UNCERTAIN if item.get("iscrowd") else None
        labels[instance_id] = Label(category=names[item["category_id"]].replace("_", " "), status=crowd)
        segmentations = item["segmentations"]
        if len(segmentations) != length:
            raise bad_annotation(
                file, f"{where}.segmentations: {len(segmentations)} entries for {length} frames of the video"
            )
        for number, frame in frames.items():
            if segmentations[number] is None:
                continue
            field = f"{where}.segmentations[{number}]"
            try:
                if isinstance(segmentations[number], list):
                    text, h, w = from_polygons(segmentations[number], height, width), height, width
                else:
                    text, h, w = from_segmentation(segmentations[number])
            except ValueError as error:
                raise bad_annotation(file, f"{field}: {error}") from error
            collector.add(instance_id, frame, fit(text, h, w, clip, file, field))
    return collector.tracks(labels)


def _video(file: str, videos: list[dict[str, Any]], clip: ClipRecord) -> dict[str, Any]:
    """The entry of the clip's video: by the folder of its frames, or by its own name."""
    for video in videos:
        files = video.get("file_names") or []
        first = str(files[0] if files else video.get("name") or video.get("file_name") or "")
        folder = first.rsplit("/", 1)[0] if files else first.rsplit(".", 1)[0]
        known = (folder, folder.rsplit("/", 1)[-1], str(video.get("name", "")))
        if any(name in known for name in video_names(clip)):
            return video
    if len(videos) == 1:
        return videos[0]
    raise bad_annotation(file, f"'videos' has no entry for {clip.name!r} among its {len(videos)}")
