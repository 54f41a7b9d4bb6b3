from __future__ import annotations

from rvt_ray.video.capabilities import decoder_capabilities


def test_the_report_is_what_really_decodes_here() -> None:
    found = {c.codec: c for c in decoder_capabilities()}
    assert found["h264"].decord == "ok"
    assert found["h264"].pyav == "ok"
    assert found["av1"].decord != "ok"
    assert all(c.usable or c.pyav == "untested" for c in found.values()), found
