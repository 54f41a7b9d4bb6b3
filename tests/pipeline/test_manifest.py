"""What the manifest tells of a corpus."""

from __future__ import annotations

from rvt_ray.pipeline.manifest import Funnel
from rvt_ray.records import DigitalTwin, Sample
from tests.pipeline.fakes import fake_sample, fake_twin
from tests.queries.twins import make_clip


def test_an_empty_corpus_says_why_nothing_was_asked() -> None:
    clip = make_clip(4, 32, 24)
    twin = fake_twin(clip)
    funnel = Funnel()
    funnel.see_twins(DigitalTwin.to_table([twin, twin]))
    why = funnel.why_nothing()
    assert why is not None
    assert "tracks: 2 confirmed" in why
    assert "candidates refused: none" in why
    funnel.see_samples(Sample.to_table([fake_sample(clip, twin, 0)]))
    assert funnel.why_nothing() is None, "a corpus with a sample needs no excuse"


def test_an_empty_twin_counts_no_track() -> None:
    twin = fake_twin(make_clip(4, 32, 24)).model_copy(update={"instances": []})
    funnel = Funnel()
    funnel.see_twins(DigitalTwin.to_table([twin]))
    assert "tracks: none" in (funnel.why_nothing() or "")
