"""The truth beside a synthetic video (`rvt_ray.synthetic`): masks, kinds, attributes, and why an object is
not visible."""

from __future__ import annotations

from rvt_ray.masks import rle
from rvt_ray.perception.base import TrackDraft
from rvt_ray.perception.files import bad_annotation
from rvt_ray.perception.segment.annotations.common import Label, TrackCollector, fit
from rvt_ray.perception.segment.annotations.options import AnnotationOptions
from rvt_ray.perception.synthetic_truth import read_truth
from rvt_ray.records import Attribute, ClipRecord


def read(clip: ClipRecord, uri: str, options: AnnotationOptions) -> list[TrackDraft]:
    """Tracks of a clip, with category, colour, material, size, and absence `out` or `occluded`.

    Raises:
        ClipError: no such file, not this format, or masks of another aspect.
    """
    file, truth = read_truth(clip, uri)
    collector = TrackCollector(clip)
    labels: dict[int, Label] = {}
    frames = [(n, f) for n in range(truth.num_frames) if (f := collector.clip_frame(n)) is not None]
    for _, frame in frames:
        collector.annotated(frame)
    for item in truth.objects:
        labels[item.instance_id] = Label(
            category=item.category,
            attributes=[
                Attribute(name=name, value=value, score=1.0, source="annotation")
                for name, value in (("colour", item.colour), ("material", item.material), ("size", item.size))
            ],
        )
        for number, frame in frames:
            where = f"objects[id {item.instance_id}].rle[{number}]"
            try:
                rle.check(item.rle[number], truth.height, truth.width)
            except ValueError as error:
                raise bad_annotation(file, f"{where}: {error}") from error
            text = fit(item.rle[number], truth.height, truth.width, clip, file, where)
            collector.add(item.instance_id, frame, text)
            why = item.absence[number]
            if why is not None:
                collector.absent(item.instance_id, frame, why)
    return collector.tracks(labels)
