"""Checks of single rows, pure functions: a twin against its clip, a sample against its twin."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from rvt_ray.masks import rle
from rvt_ray.records import Box, ClipRecord, DigitalTwin, Instance, Sample, Task

_BOX_TOLERANCE = 1e-6
_ANNOTATED = {True: "but every target is annotated there", False: "but a target is not annotated there"}
Executor = Callable[[str], tuple[set[int], set[int]]]


def check_twin(twin: DigitalTwin, clip: ClipRecord) -> Iterator[str]:
    """What is wrong with a twin: size, times, ids, masks, and numbers that disagree with the masks."""
    if (twin.width, twin.height, twin.num_frames) != (clip.width, clip.height, clip.num_frames):
        yield (
            f"is {twin.num_frames} frames of {twin.width}x{twin.height}, "
            f"its clip {clip.num_frames} of {clip.width}x{clip.height}"
        )
        return
    if twin.pts_s != clip.pts_s:
        yield "pts_s is not the clip's"
    if len(twin.frame_measures) not in (0, twin.num_frames):
        yield f"frame_measures has {len(twin.frame_measures)} entries for {twin.num_frames} frames"
    aligned = [step.frame_idx for step in twin.depth_alignment]
    if aligned != sorted({frame for frame in aligned if 0 <= frame < twin.num_frames}):
        yield "depth_alignment: frame_idx does not ascend inside of the clip"
    ids = [instance.instance_id for instance in twin.instances]
    if len(set(ids)) != len(ids):
        yield f"instance ids occur twice: {sorted(i for i in set(ids) if ids.count(i) > 1)}"
    for instance in twin.instances:
        if instance.parent_id is not None and instance.parent_id not in ids:
            yield f"instance {instance.instance_id}: its parent {instance.parent_id} is not there"
        for what in _check_track(instance, twin):
            yield f"instance {instance.instance_id}: {what}"


def _check_track(instance: Instance, twin: DigitalTwin) -> Iterator[str]:
    track = instance.track
    n = len(track.frame_idx)
    lengths = {name: len(getattr(track, name)) for name in type(track).model_fields}
    wrong = sorted(name for name, length in lengths.items() if length != n)
    if wrong:
        yield f"columns {', '.join(wrong)} are not as long as frame_idx ({n})"
        return
    if any(b <= a for a, b in zip(track.frame_idx, track.frame_idx[1:], strict=False)):
        yield "frame_idx does not ascend"
    if n and not 0 <= track.frame_idx[0] <= track.frame_idx[-1] < twin.num_frames:
        yield f"frame_idx leaves the clip's {twin.num_frames} frames"
    for i, text in enumerate(track.rle):
        frame = track.frame_idx[i]
        if text is None:
            if track.visible[i]:
                yield f"frame {frame}: visible, but not annotated"
            continue
        try:
            rle.check(text, twin.height, twin.width)
        except ValueError as error:
            yield f"frame {frame}: mask: {error}"
            continue
        area = rle.area(text)
        if track.visible[i] != (area > 0):
            yield f"frame {frame}: visible is {track.visible[i]}, the mask has {area} pixels"
        if track.area[i] != area:
            yield f"frame {frame}: area {track.area[i]}, the mask has {area} pixels"
        box = rle.bbox(text, twin.height, twin.width)
        given = (track.box_x[i], track.box_y[i], track.box_w[i], track.box_h[i])
        if given != (box if box is not None else (None,) * 4):
            yield f"frame {frame}: box {given}, the mask's is {box}"
        if (track.absence[i] is None) != track.visible[i]:
            yield f"frame {frame}: visible is {track.visible[i]}, absence is {track.absence[i]}"


def check_sample(
    sample: Sample, clip: ClipRecord, twin: DigitalTwin, execute: Executor | None
) -> Iterator[str]:
    """What is wrong with a sample: targets, masks, boxes, licence, the columns of its task, its program.

    Args:
        execute: program -> (certain, possible) targets on this twin; None skips the execution.
    """
    by_id = {instance.instance_id: instance for instance in twin.instances}
    missing = [i for i in sample.target_ids if i not in by_id]
    if missing:
        yield f"targets {missing} are not in the twin"
        return
    if sample.source_license != clip.license:
        yield f"source_license {sample.source_license!r} is not the clip's {clip.license!r}"
    if not sample.query.strip():
        yield "query is empty"
    targets = [by_id[i] for i in sample.target_ids]
    yield from _check_task_columns(sample)
    if sample.masks is not None:
        yield from _check_masks(sample.masks, targets, clip)
    if sample.boxes is not None:
        yield from _check_boxes(sample.boxes, targets, clip)
    if execute is not None:
        yield from _check_program(sample, execute)


def _check_task_columns(sample: Sample) -> Iterator[str]:
    wanted = {
        "masks": sample.task is Task.SEGMENTATION,
        "boxes": sample.task is Task.GROUNDING,
        "answer": sample.task in (Task.SUMMARY, Task.VQA),
    }
    for name, is_wanted in wanted.items():
        if (getattr(sample, name) is not None) != is_wanted:
            yield f"{name} is {'null' if is_wanted else 'set'}, which a {sample.task} sample's must not be"
    if sample.choices and sample.answer not in sample.choices:
        yield f"the answer {sample.answer!r} is not among the choices"


def _check_masks(masks: list[str | None], targets: list[Instance], clip: ClipRecord) -> Iterator[str]:
    if len(masks) != clip.num_frames:
        yield f"{len(masks)} masks for {clip.num_frames} frames"
        return
    truth = _by_frame(targets, clip.num_frames)
    for frame, text in enumerate(masks):
        parts = truth[frame]
        if (text is None) != (parts is None):
            given = "null" if text is None else "set"
            yield f"frame {frame}: the mask is {given}, {_ANNOTATED[parts is not None]}"
        if text is None or parts is None:
            continue
        try:
            rle.check(text, clip.height, clip.width)
        except ValueError as error:
            yield f"frame {frame}: mask: {error}"
            continue
        union = rle.union([instance.track.rle[i] or "" for instance, i in parts], clip.height, clip.width)
        if text != union and rle.iou(text, union, clip.height, clip.width) != 1.0:
            yield f"frame {frame}: the mask is not the union of the targets' masks in the twin"


def _check_boxes(boxes: list[list[Box] | None], targets: list[Instance], clip: ClipRecord) -> Iterator[str]:
    if len(boxes) != clip.num_frames:
        yield f"boxes of {len(boxes)} frames for {clip.num_frames}"
        return
    truth = _by_frame(targets, clip.num_frames)
    for frame, found in enumerate(boxes):
        parts = truth[frame]
        if (found is None) != (parts is None):
            state = "null" if found is None else "set"
            yield f"frame {frame}: boxes are {state}, {_ANNOTATED[parts is not None]}"
        if found is None or parts is None:
            continue
        given = sorted((b.x, b.y, b.w, b.h) for b in found)
        wanted = sorted(_box(instance, i) for instance, i in parts if instance.track.visible[i])
        same = len(given) == len(wanted) and all(
            abs(a - b) <= _BOX_TOLERANCE
            for one, other in zip(given, wanted, strict=True)
            for a, b in zip(one, other, strict=True)
        )
        if not same:
            yield f"frame {frame}: boxes {given}, the targets' are {wanted}"


def _box(instance: Instance, i: int) -> tuple[float, float, float, float]:
    track = instance.track
    return (track.box_x[i] or 0.0, track.box_y[i] or 0.0, track.box_w[i] or 0.0, track.box_h[i] or 0.0)


def _by_frame(targets: list[Instance], frames: int) -> list[list[tuple[Instance, int]] | None]:
    """Per clip frame each target with its place in its track; null where a target is not annotated."""
    places = []
    for instance in targets:
        track = instance.track
        annotated = {f: i for i, f in enumerate(track.frame_idx) if track.rle[i] is not None}
        places.append((instance, annotated))
    return [
        [(instance, annotated[frame]) for instance, annotated in places]
        if all(frame in annotated for _, annotated in places)
        else None
        for frame in range(frames)
    ]


def _check_program(sample: Sample, execute: Executor) -> Iterator[str]:
    try:
        certain, possible = execute(sample.program)
    except ValueError as error:
        yield f"program cannot be run: {str(error).partition(chr(10))[0]}"
        return
    targets = set(sample.target_ids)
    if certain != targets or possible != targets:
        yield (
            f"program gives certain {sorted(certain)} and possible {sorted(possible)}, "
            f"the targets are {sorted(targets)}"
        )
