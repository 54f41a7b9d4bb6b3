"""The pages in a real browser: images load, no script fails, nothing untrusted runs or overflows."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from html import unescape

import pytest

from rvt_ray.gallery import write_gallery
from tests.gallery.conftest import N

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine (Debian: apt install chromium)"),
]
FLAGS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--hide-scrollbars",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
]  # fmt: skip

# Runs in a page of ours that frames the page under test (same origin) and writes down what it sees.
PROBE = """<!doctype html><meta charset=utf-8>
<iframe id=f width="%(width)d" height=900></iframe><pre id=r></pre>
<script>
const f = document.getElementById("f"), r = {errors: []};
f.onload = async () => {
  const d = f.contentDocument;
  d.querySelectorAll("details").forEach((e) => (e.open = true));
  const images = [...d.querySelectorAll("img")];
  images.forEach((i) => (i.loading = "eager"));
  await Promise.all(images.map((i) => i.complete ? 0 : new Promise((k) => (i.onload = i.onerror = k))));
  r.images = images.length;
  r.broken = images.filter((i) => !i.naturalWidth).map((i) => i.src);
  r.title = d.title;
  r.overflow = d.documentElement.scrollWidth - d.documentElement.clientWidth;
  r.styled = getComputedStyle(d.body).margin === "0px";
  const box = d.getElementById("filter");
  if (box) {
    box.value = "pillar crate"; box.dispatchEvent(new Event("input"));
    r.shown = [...d.querySelectorAll(".card")].filter((c) => !c.hidden).length;
    r.count = d.getElementById("filter-count").textContent;
  }
  document.getElementById("r").textContent = JSON.stringify(r);
};
f.src = "%(page)s";
</script>"""


@pytest.fixture(scope="module")
def pages(corpus, opener, tmp_path_factory):
    folder = tmp_path_factory.mktemp("browser")
    write_gallery(corpus, folder, frames=opener)
    return folder


@pytest.fixture(scope="module")
def server(pages, serve):
    return serve(pages)


def browse(profile, *arguments):
    return subprocess.run(
        [CHROMIUM, *FLAGS, f"--user-data-dir={profile}", "--enable-logging=stderr", *arguments],
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip


def console_errors(result):
    lines = [line for line in result.stderr.splitlines() if "CONSOLE" in line]
    return [line for line in lines if "error" in line.lower() or "refused" in line.lower()]


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("which", ["index.html", f"*-{N:05d}.html", "ffff*.html", "aaaa*.html"])
def test_a_page_loads_whole_and_fits_its_window(pages, server, tmp_path, which, width):
    page = next(p for p in pages.glob(which) if not p.name.startswith("probe"))
    probe = pages / f"probe-{width}-{page.name}"
    probe.write_text(PROBE % {"page": page.name, "width": width}, encoding="utf-8")
    result = browse(tmp_path, "--virtual-time-budget=8000", "--dump-dom", f"{server}/{probe.name}")
    found = re.search(r'<pre id="r">(.+?)</pre>', result.stdout, re.S)
    assert found, result.stdout[-500:] + result.stderr[-1500:]
    report = json.loads(unescape(found[1]))
    assert report["broken"] == []
    assert report["title"] != "owned"
    assert report["overflow"] <= 0
    assert report["styled"]
    assert console_errors(result) == []
    if which == "index.html":
        assert report["images"] == 2
        assert report["shown"] == 1
        assert report["count"] == "1 of 3 clips shown"


def test_a_page_opened_from_disk_has_its_style_and_pictures(pages, tmp_path):
    """The content security policy must not lock out file:// pages, which is how most people open them."""
    cv2 = pytest.importorskip("cv2")
    page = next(p for p in pages.glob(f"*-{N:05d}.html") if not p.name.startswith("probe"))
    shot = tmp_path / "shot.png"
    result = browse(tmp_path / "profile", "--window-size=1280,900", f"--screenshot={shot}", page.as_uri())
    assert console_errors(result) == []
    image = cv2.imread(str(shot))
    assert image.shape[:2] == (900, 1280)
    blue, green, red = (image[..., i].astype(int) for i in range(3))
    assert ((red > 150) & (green < 90) & (blue < 90)).sum() > 500, (
        "the red ball of the key frames is not there"
    )
