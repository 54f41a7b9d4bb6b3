"""Masks that already exist, in each format: one synthetic scene written in all of them must read the same."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from rvt_ray.backends import BackendSpec, build
from rvt_ray.errors import ClipError, ConfigError
from rvt_ray.masks import geometry, rle
from rvt_ray.perception.base import Segmentation, TrackDraft
from rvt_ray.perception.segment import BACKENDS
from rvt_ray.records import Absence, ClipRecord, Coverage, FailureCode, TrackStatus
from rvt_ray.synthetic import Frame, Key, ObjectSpec, SceneSpec, random_scene, render, write_clip
from rvt_ray.video.frames import ArrayFrames

WIDTH, HEIGHT, FRAMES = 96, 64, 12
NO_PIXELS = ArrayFrames(np.zeros((0, 1, 1, 3), np.uint8), np.zeros(0))


def clip_of(path: Path, form: str | None, **changes: Any) -> ClipRecord:
    n = changes.get("num_frames", FRAMES)
    values: dict[str, Any] = {
        "clip_id": "c",
        "video_id": "v",
        "source": "s",
        "name": "scene",
        "uri": "scene.mp4",
        "sha256": "0",
        "license": "test",
        "start_frame": 0,
        "num_frames": n,
        "pts_s": [i / 24 for i in range(n)],
        "fps_nominal": 24.0,
        "width": WIDTH,
        "height": HEIGHT,
        "rotation": 0,
        "decoder": "test",
        "decoder_version": "0",
        "num_frames_header": None,
        "flags": [],
        "annotation_uri": str(path),
        "annotation_format": form,
        **changes,
    }
    return ClipRecord(**values)


def segment(clip: ClipRecord, **options: Any) -> Segmentation:
    backend = build(BackendSpec(backend="annotations", options=options), BACKENDS, "perceive.segment")
    result = backend.segment(clip, NO_PIXELS, [0, 5])
    assert isinstance(result, Segmentation)
    assert result.key_frames == [0, 5]
    return result


def fails(clip: ClipRecord, message: str, **options: Any) -> None:
    with pytest.raises(ClipError, match=message) as caught:
        segment(clip, **options)
    assert caught.value.code is FailureCode.BAD_ANNOTATION


@pytest.fixture(scope="module")
def spec() -> SceneSpec:
    return random_scene(4, num_objects=5, num_frames=FRAMES, width=WIDTH, height=HEIGHT)


@pytest.fixture(scope="module")
def frames(spec: SceneSpec) -> list[Frame]:
    return list(render(spec))


def truth_masks(frames: list[Frame], instance_id: int) -> list[np.ndarray]:
    return [f.instances == instance_id for f in frames]


def check(tracks: list[TrackDraft], frames: list[Frame], at: list[int], shift: int = 0) -> None:
    """Every track equals the instance maps of the frames `at` (clip frame = video frame - shift)."""
    seen = {i for t in at for i in np.unique(frames[t].instances).tolist()} - {0}
    assert {t.instance_id for t in tracks} == seen
    for track in tracks:
        assert track.frame_idx == [t - shift for t in at]
        assert track.score == [None] * len(at)
        for text, why, t in zip(track.rle, track.absence, at, strict=True):
            own = frames[t].instances == track.instance_id
            assert (rle.decode(text, HEIGHT, WIDTH) == own).all()
            assert (why is None) == bool(own.any())


def write_davis(folder: Path, frames: list[Frame], names: Callable[[int], str] = "{:05d}".format) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for frame in frames:
        image = Image.fromarray(frame.instances.astype(np.uint8), mode="P")
        # As in DAVIS, the colour of an id has nothing to do with its number.
        image.putpalette([0, 0, 0] + [v for i in range(1, 256) for v in (255 - i, (i * 37) % 256, 5)])
        image.save(folder / f"{names(frame.index)}.png")
    return folder


def write_sav(path: Path, frames: list[Frame], ids: list[int], stride: int = 4) -> Path:
    def entry(frame: Frame, i: int) -> dict[str, Any]:
        return {"size": [HEIGHT, WIDTH], "counts": rle.encode(frame.instances == i)}

    data = {
        "video_id": "scene",
        "video_frame_count": float(len(frames)),
        "masklet": [[entry(f, i) for i in ids] for f in frames[::stride]],
        "masklet_id": [i - 1 for i in ids],
    }
    path.write_text(json.dumps(data))
    return path


def youtube_vis(frames: list[Frame], spec: SceneSpec) -> dict[str, Any]:
    def entry(mask: np.ndarray, number: int) -> Any:
        if not mask.any():
            return None
        text = rle.encode(mask)
        # Both writings occur in the wild.
        counts: Any = text if number % 2 else rle.counts(text).tolist()
        return {"size": [HEIGHT, WIDTH], "counts": counts}

    kinds = sorted({o.kind for o in spec.objects})
    names = [f"scene/{i:05d}.jpg" for i in range(FRAMES)]
    return {
        "videos": [
            {"id": 1, "width": 10, "height": 10, "length": 1, "file_names": ["other/00000.jpg"]},
            {"id": 2, "width": WIDTH, "height": HEIGHT, "length": FRAMES, "file_names": names},
        ],
        "categories": [{"id": i + 40, "name": kind} for i, kind in enumerate(kinds)],
        "annotations": [
            {
                "id": o.instance_id,
                "video_id": 2,
                "category_id": 40 + kinds.index(o.kind),
                "iscrowd": int(o.instance_id == 1),
                "segmentations": [entry(m, t) for t, m in enumerate(truth_masks(frames, o.instance_id))],
            }
            for o in spec.objects
        ],
    }


ALL = list(range(FRAMES))


def test_davis_label_maps_keep_their_ids(tmp_path: Path, frames: list[Frame]) -> None:
    folder = write_davis(tmp_path / "scene", frames)
    check(segment(clip_of(folder, "davis")).tracks, frames, ALL)
    # The folder above holds one folder per video.
    check(segment(clip_of(tmp_path, "davis", name="set/scene")).tracks, frames, ALL)


def test_a_clip_in_the_middle_of_a_video_gets_its_own_frames(tmp_path: Path, frames: list[Frame]) -> None:
    folder = write_davis(tmp_path, frames)
    check(segment(clip_of(folder, "davis", start_frame=5, num_frames=4)).tracks, frames, [5, 6, 7, 8], 5)


def test_void_is_not_an_object_unless_asked(tmp_path: Path, frames: list[Frame]) -> None:
    folder = write_davis(tmp_path, frames[:1])
    with Image.open(folder / "00000.png") as image:
        labels = np.asarray(image).copy()
    labels[:3, :3] = 255
    Image.fromarray(labels).save(folder / "00000.png")  # plain grey: ids all the same
    clip = clip_of(folder, "davis", num_frames=1)
    assert 255 not in [t.instance_id for t in segment(clip).tracks]
    assert 255 in [t.instance_id for t in segment(clip, void_id=None).tracks]


def test_an_object_that_leaves_is_annotated_and_absent_and_not_unannotated(tmp_path: Path) -> None:
    labels = np.zeros((HEIGHT, WIDTH), np.uint8)
    labels[5:9, 5:9] = 3
    for name, picture in (("0", labels), ("1", labels * 0), ("2", labels)):
        Image.fromarray(picture).save(tmp_path / f"{name}.png")
    (track,) = segment(clip_of(tmp_path, "davis", num_frames=5)).tracks
    assert track.frame_idx == [0, 1, 2]  # frames 3 and 4 have no PNG
    assert track.absence == [None, Absence.UNKNOWN, None]
    assert track.rle[1] == rle.empty(HEIGHT, WIDTH)
    assert track.category is None


def test_sparse_label_maps_can_be_placed_by_their_names(tmp_path: Path, frames: list[Frame]) -> None:
    folder = write_davis(tmp_path, frames[::5])
    check(segment(clip_of(folder, "davis"), png_frames="names").tracks, frames, [0, 5, 10])


def test_a_colour_picture_is_not_a_label_map(tmp_path: Path) -> None:
    Image.new("RGB", (WIDTH, HEIGHT)).save(tmp_path / "00000.png")
    fails(clip_of(tmp_path, "davis"), "00000.png: a label map has one channel.*RGB")


@pytest.mark.parametrize("content", [b"", b"not a png", b"\x89PNG\r\n\x1a\nrubbish"])
def test_a_broken_png_is_named(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "00000.png").write_bytes(content)
    fails(clip_of(tmp_path, "davis"), "00000.png: not a readable PNG")


def test_a_truncated_png_is_named(tmp_path: Path, frames: list[Frame]) -> None:
    file = write_davis(tmp_path, frames[:1]) / "00000.png"
    file.write_bytes(file.read_bytes()[:-60])
    fails(clip_of(tmp_path, "davis"), "00000.png: not a readable PNG")


def test_masks_of_a_scaled_video_are_scaled_with_it(tmp_path: Path, frames: list[Frame]) -> None:
    folder = write_davis(tmp_path, frames)
    half = segment(clip_of(folder, "davis", width=WIDTH // 2, height=HEIGHT // 2)).tracks
    full = {t.instance_id: t for t in segment(clip_of(folder, "davis")).tracks}
    for track in half:
        for small, big in zip(track.rle, full[track.instance_id].rle, strict=True):
            expected = geometry.resize(rle.decode(big, HEIGHT, WIDTH), HEIGHT // 2, WIDTH // 2)
            found = rle.decode(small, HEIGHT // 2, WIDTH // 2)
            assert abs(int(found.sum()) - int(expected.sum())) <= 0.2 * expected.sum() + 4


@pytest.mark.parametrize("size", [(HEIGHT, WIDTH), (WIDTH, WIDTH)])
@pytest.mark.parametrize("form", ["davis", "sav", "youtube_vis", "synthetic"])
def test_masks_of_another_aspect_are_refused_in_every_format(
    tmp_path: Path, frames: list[Frame], spec: SceneSpec, form: str, size: tuple[int, int]
) -> None:
    path = {
        "davis": lambda: write_davis(tmp_path / "d", frames[:1]),
        "sav": lambda: write_sav(tmp_path / "s.json", frames, [1, 2]),
        "youtube_vis": lambda: _dump(tmp_path / "y.json", youtube_vis(frames, spec)),
        "synthetic": lambda: write_clip(spec, tmp_path, "scene", depth_every=0).annotation,
    }[form]()
    width, height = size
    fails(clip_of(path, form, width=width, height=height), f"height 64 x width 96 .* {height} x {width}")


def _dump(path: Path, data: Any) -> Path:
    path.write_text(json.dumps(data))
    return path


def test_sav_masklets_lie_on_every_fourth_frame(tmp_path: Path, frames: list[Frame]) -> None:
    ids = sorted({i for f in frames for i in np.unique(f.instances).tolist()} - {0})
    write_sav(tmp_path / "scene_manual.json", frames, ids)
    check(segment(clip_of(tmp_path, "sav")).tracks, frames, [0, 4, 8])
    check(segment(clip_of(tmp_path, "sav", start_frame=3, num_frames=6)).tracks, frames, [4, 8], 3)


def test_the_spacing_of_sav_follows_the_files_frame_count(tmp_path: Path, frames: list[Frame]) -> None:
    ids = sorted({i for f in frames for i in np.unique(f.instances).tolist()} - {0})
    path = write_sav(tmp_path / "every.json", frames, ids, stride=1)
    check(segment(clip_of(path, "sav")).tracks, frames, ALL)
    tracks = segment(clip_of(path, "sav", num_frames=60), sav_stride=5).tracks
    assert tracks[0].frame_idx == [5 * i for i in range(FRAMES)]


def test_manual_masklets_go_before_automatic_ones_and_can_be_swapped(
    tmp_path: Path, frames: list[Frame]
) -> None:
    seen = [i for i in np.unique(frames[0].instances).tolist() if i]
    write_sav(tmp_path / "scene_manual.json", frames, seen[:1])
    write_sav(tmp_path / "scene_auto.json", frames, seen[:2])
    clip = clip_of(tmp_path, "sav")
    assert [t.instance_id for t in segment(clip).tracks] == seen[:1]
    assert [t.instance_id for t in segment(clip, sav_masklets="auto").tracks] == seen[:2]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d.pop("masklet"), "'masklet' and 'masklet_id' must be lists"),
        (lambda d: d["masklet"][1].pop(), r"masklet\[1\]: 1 entries for 2 masklet ids"),
        (lambda d: d["masklet_id"].__setitem__(1, 0), "masklet_id: must be distinct"),
        (lambda d: d["masklet"][2][1].__setitem__("counts", "oops"), r"masklet\[2\]\[1\]: .*RLE"),
        (lambda d: d["masklet"][0].__setitem__(0, None), r"masklet\[0\]\[0\]: expected an RLE"),
    ],
)
def test_a_wrong_field_of_sav_is_named(
    tmp_path: Path, frames: list[Frame], change: Callable[[Any], Any], message: str
) -> None:
    path = write_sav(tmp_path / "scene.json", frames, [1, 2])
    data = json.loads(path.read_text())
    change(data)
    fails(clip_of(_dump(path, data), "sav"), f"scene.json: {message}")


def test_youtube_vis_gives_masks_and_names(tmp_path: Path, frames: list[Frame], spec: SceneSpec) -> None:
    path = _dump(tmp_path / "instances.json", youtube_vis(frames, spec))
    tracks = segment(clip_of(path, "youtube_vis")).tracks
    check(tracks, frames, ALL)
    kinds = {o.instance_id: o.kind for o in spec.objects}
    for track in tracks:
        assert (track.category, track.category_score) == (kinds[track.instance_id], 1.0)
        assert track.status is (TrackStatus.UNCERTAIN if track.instance_id == 1 else None)
    part = segment(clip_of(path, "youtube_vis", start_frame=4, num_frames=3)).tracks
    check(part, frames, [4, 5, 6], 4)


def test_youtube_vis_polygons_are_rasterised(tmp_path: Path, frames: list[Frame], spec: SceneSpec) -> None:
    data = youtube_vis(frames, spec)
    data["annotations"][0]["segmentations"] = [[[10, 10, 30, 10, 30, 20, 10, 20]]] * FRAMES
    first = data["annotations"][0]["id"]
    tracks = segment(clip_of(_dump(tmp_path / "y.json", data), "youtube_vis")).tracks
    (track,) = [t for t in tracks if t.instance_id == first]
    assert rle.bbox(track.rle[0], HEIGHT, WIDTH) == (10, 10, 20, 10)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d.__setitem__("categories", {}), "'categories' must be a list"),
        (lambda d: d["videos"][1].__setitem__("file_names", ["x/0.jpg"]), "no entry for 'scene' among its 2"),
        (lambda d: d["annotations"][0].pop("segmentations"), "a field is missing.*segmentations"),
        (lambda d: d["annotations"][0]["segmentations"].pop(), r"segmentations: 11 entries for 12 frames"),
        (
            lambda d: d["annotations"][0].__setitem__("category_id", 7),
            "category_id: 7 is not in 'categories'",
        ),
        (lambda d: d["annotations"][0].__setitem__("id", 0), "distinct integers >= 1"),
        (
            lambda d: d["annotations"][0]["segmentations"].__setitem__(2, {"size": [1, 1], "counts": [9]}),
            r"segmentations\[2\]: the RLE fills 9 pixels",
        ),
    ],
)
def test_a_wrong_field_of_youtube_vis_is_named(
    tmp_path: Path, frames: list[Frame], spec: SceneSpec, change: Callable[[Any], Any], message: str
) -> None:
    data = youtube_vis(frames, spec)
    change(data)
    fails(clip_of(_dump(tmp_path / "y.json", data), "youtube_vis"), f"y.json: .*{message}")


def test_synthetic_truth_knows_kinds_attributes_and_why_something_is_absent(tmp_path: Path) -> None:
    # The ball comes from outside, vanishes behind the box, and goes.
    roll = (Key(frame=0, x=-5, z=6), Key(frame=23, x=5, z=6))
    spec = SceneSpec(
        width=WIDTH,
        height=HEIGHT,
        num_frames=24,
        objects=(
            ObjectSpec(instance_id=4, kind="ball", colour="red", material="metal", size="small", path=roll),
            ObjectSpec(
                instance_id=9,
                kind="box",
                colour="blue",
                size="large",
                heading=0.0,
                path=(Key(frame=0, x=0, z=4.5),),
            ),
        ),
    )
    write_clip(spec, tmp_path, "scene", depth_every=0)
    frames = list(render(spec))
    tracks = segment(clip_of(tmp_path / "annotations", "synthetic", num_frames=24)).tracks
    check(tracks, frames, list(range(24)))
    objects = {o.instance_id: o for o in spec.objects}
    reasons = set()
    for track in tracks:
        o = objects[track.instance_id]
        assert track.category == o.kind
        claims = {a.name: a.value for a in track.attributes}
        assert claims == {"colour": o.colour, "material": o.material, "size": o.size}
        assert all(a.source == "annotation" and a.score == 1 for a in track.attributes)
        for frame, why in zip(frames, track.absence, strict=True):
            if why is not None:
                inside = frame.amodal[track.instance_id].any()
                assert why is (Absence.OCCLUDED if inside else Absence.OUT)
                reasons.add(why)
    assert reasons == {Absence.OUT, Absence.OCCLUDED}


def test_wrong_synthetic_truth_is_named(tmp_path: Path, spec: SceneSpec) -> None:
    path = write_clip(spec, tmp_path, "scene", depth_every=0).annotation
    data = json.loads(path.read_text())
    data["objects"][0]["rle"][1] = rle.empty(3, 3)
    fails(clip_of(_dump(path, data), "synthetic"), r"scene.json: objects\[id .\].rle\[1\]: .*fills 9")
    data["colour_space"] = "rgb"
    fails(clip_of(_dump(path, data), "synthetic"), "scene.json: unknown key 'colour_space'")


@pytest.mark.parametrize("form", ["sav", "youtube_vis", "synthetic"])
def test_a_file_that_is_no_json_is_named(tmp_path: Path, form: str) -> None:
    path = tmp_path / "scene.json"
    path.write_text("{]")
    fails(clip_of(path, form), "scene.json: not valid JSON")
    fails(clip_of(tmp_path / "gone.json", form), "gone.json: no such file or folder")
    (tmp_path / "empty").mkdir()
    fails(clip_of(tmp_path / "empty", form), "holds no .* for the video 'scene'; looked for scene")
    path.write_text("[1, 2]")
    fails(clip_of(path, form), "scene.json")


def test_a_folder_without_label_maps_is_named(tmp_path: Path) -> None:
    fails(clip_of(tmp_path, "davis"), "holds no PNG label maps for the video 'scene'")
    fails(clip_of(tmp_path / "gone", "davis"), "gone: cannot list the folder")


def test_a_video_without_annotations_says_what_to_set(tmp_path: Path) -> None:
    fails(clip_of(tmp_path, None, annotation_uri=None), "annotation_format.*another perceive.segment.backend")
    fails(clip_of(tmp_path, "davies"), "unknown annotation_format 'davies'; did you mean 'davis'")


def test_a_changed_file_is_read_again(tmp_path: Path, frames: list[Frame]) -> None:
    path = write_sav(tmp_path / "scene.json", frames, [1, 2])
    before = {t.instance_id for t in segment(clip_of(path, "sav")).tracks}
    write_sav(path, frames, [1, 2, 3, 4, 5])
    assert {t.instance_id for t in segment(clip_of(path, "sav")).tracks} > before


def test_a_mistyped_option_is_refused_with_the_right_one() -> None:
    with pytest.raises(ConfigError, match="unknown key 'void'; did you mean 'void_id'"):
        build(BackendSpec(backend="annotations", options={"void": 3}), BACKENDS, "perceive.segment")


def test_only_rendered_truth_or_a_persons_word_claims_that_everything_is_annotated(
    tmp_path: Path, spec: SceneSpec, frames: list[Frame]
) -> None:
    """Else "how many" and "there is none" would be answered by what somebody chose to annotate."""
    masks = clip_of(write_davis(tmp_path / "scene", frames), "davis")
    assert segment(masks).coverage is Coverage.SOME
    assert segment(masks, exhaustive=True).coverage is Coverage.EVERYTHING
    written = write_clip(spec, tmp_path, "scene", depth_every=0)
    truth = clip_of(written.annotation, "synthetic")
    assert segment(truth).coverage is Coverage.EVERYTHING
    assert segment(truth, exhaustive=False).coverage is Coverage.SOME
