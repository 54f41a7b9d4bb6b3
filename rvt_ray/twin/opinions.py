"""Merging what a captioner thinks of a clip into the twin that was measured, each claim with its source."""

from __future__ import annotations

from rvt_ray.perception.base import Captioner, Captions, InstanceCaption, TrackDraft
from rvt_ray.records import DigitalTwin, Instance, Scored
from rvt_ray.twin.claims import NEUTRAL_CATEGORY, merge_attributes
from rvt_ray.twin.facts import kinds

SOURCE = "vlm"


def drafts_of(twin: DigitalTwin) -> list[TrackDraft]:
    """A twin's tracks as a captioner takes them; without labels, which would be hints."""
    drafts = []
    for instance in twin.instances:
        track = instance.track
        noted = [i for i, text in enumerate(track.rle) if text is not None]
        drafts.append(
            TrackDraft(
                instance_id=instance.instance_id,
                frame_idx=[track.frame_idx[i] for i in noted],
                rle=[track.rle[i] or "" for i in noted],
                absence=[track.absence[i] for i in noted],
                score=[track.score[i] for i in noted],
            )
        )
    return drafts


def with_opinions(
    twin: DigitalTwin, opinions: Captions, captioner: Captioner, settings_id: str
) -> DigitalTwin:
    """A copy of the twin with the opinions merged in. Nothing that was known is thrown away.

    Category: the segmenter's label stays the name, unless the opinion is a special case of it ("person",
    "woman"): both say the same then, and the narrower word is taken. Where there was no label the opinion
    names the thing. Every name keeps its score and who gave it. Attributes: see `merge_attributes`.

    Args:
        captioner: whose they are; its name and weights go into the twin.
        settings_id: fingerprint of the settings that could change the result.
    """
    said = {opinion.instance_id: opinion for opinion in opinions.instances}
    segmenter = twin.provenance.segment.partition(":")[0]
    instances = [
        _merged(instance, said[instance.instance_id], segmenter) if instance.instance_id in said else instance
        for instance in twin.instances
    ]
    scene = twin.scene.model_copy(
        update={
            "caption": opinions.scene or twin.scene.caption,
            "tags": list(dict.fromkeys([*twin.scene.tags, *opinions.tags])),
        }
    )
    provenance = twin.provenance.model_copy(
        update={"caption": f"{twin.provenance.caption}+{captioner.name}", "settings": settings_id}
    )
    return twin.model_copy(
        update={
            "instances": instances,
            "scene": scene,
            "provenance": provenance,
            "weights": [*twin.weights, *getattr(captioner, "weights", ())],
        }
    )


def _merged(instance: Instance, opinion: InstanceCaption, segmenter: str) -> Instance:
    label = None if instance.category == NEUTRAL_CATEGORY else instance.category
    names: dict[str, Scored] = {}
    for name in instance.alternatives:
        names[name.value] = name.model_copy(update={"source": name.source or segmenter})
    for name in opinion.alternatives:
        known = names.get(name.value)
        if known is None:
            names[name.value] = name.model_copy(update={"source": SOURCE})
        else:
            score = max(known.score, name.score) if name.value in (label, opinion.category) else known.score
            names[name.value] = Scored(value=name.value, score=score, source=f"{known.source}+{SOURCE}")
    category = label or opinion.category or NEUTRAL_CATEGORY
    if label is not None and opinion.category is not None and kinds.is_a(opinion.category, label):
        category = opinion.category
    ordered = sorted(names.values(), key=lambda n: (n.value != category, -n.score, n.value))
    return instance.model_copy(
        update={
            "category": category,
            "alternatives": ordered,
            "attributes": merge_attributes([*instance.attributes, *opinion.attributes]),
            "caption": opinion.caption or instance.caption,
        }
    )
