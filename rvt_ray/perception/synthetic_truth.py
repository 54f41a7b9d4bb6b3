"""Finding and checking the truth file of a synthetic video; masks and depth both start from it."""

from __future__ import annotations

from pydantic import ValidationError

from rvt_ray.backends import explain
from rvt_ray.perception.files import bad_annotation, find, read_json
from rvt_ray.records import ClipRecord
from rvt_ray.synthetic.annotation import ClipAnnotation


def read_truth(clip: ClipRecord, uri: str) -> tuple[str, ClipAnnotation]:
    """URI and content of the truth file of a clip's video.

    Raises:
        ClipError: no such file, or not this format.
    """
    file = find(clip, uri, [".json"], "synthetic truth")
    data = read_json(file)
    try:
        truth = ClipAnnotation.model_validate(data)
    except ValidationError as error:
        raise bad_annotation(file, explain(error, ClipAnnotation)) from error
    return file, truth
