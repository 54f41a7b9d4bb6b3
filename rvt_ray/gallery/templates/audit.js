// Verdicts are kept in this browser (localStorage) under the key of the draw, and exported as JSON lines.
"use strict";
(function () {
  const bar = document.getElementById("bar");
  const rater = document.getElementById("rater");
  const onlyOpen = document.getElementById("only-open");
  const progress = document.getElementById("progress");
  const download = document.getElementById("download");
  const articles = Array.from(document.querySelectorAll("article[data-sample]"));
  const place = "rvt-ray-audit-" + bar.dataset.audit;
  let state = { rater: "", verdicts: {} };

  function load() {
    try {
      const kept = JSON.parse(localStorage.getItem(place) || "null");
      if (kept && kept.verdicts) state = kept;
    } catch (error) {
      progress.textContent = "This browser keeps nothing: export before you close the page";
    }
  }
  function save() {
    try {
      localStorage.setItem(place, JSON.stringify(state));
    } catch (error) {
      progress.textContent = "This browser keeps nothing: export before you close the page";
    }
  }
  function entry(article) {
    const id = article.dataset.sample;
    if (!state.verdicts[id]) state.verdicts[id] = { verdict: "", note: "", peeked: false };
    return state.verdicts[id];
  }
  function show() {
    let judged = 0;
    for (const article of articles) {
      const mine = state.verdicts[article.dataset.sample] || {};
      for (const button of article.querySelectorAll(".verdict")) {
        button.setAttribute("aria-pressed", String(button.dataset.verdict === mine.verdict));
      }
      article.classList.toggle("done", Boolean(mine.verdict));
      article.hidden = onlyOpen.checked && Boolean(mine.verdict);
      if (mine.verdict) judged += 1;
    }
    progress.textContent = judged + " of " + articles.length + " judged";
  }
  function lines() {
    const out = [];
    for (const article of articles) {
      const mine = state.verdicts[article.dataset.sample];
      if (!mine || !mine.verdict) continue;
      const data = article.dataset;
      out.push(JSON.stringify({
        audit: bar.dataset.audit, sample_id: data.sample, clip_id: data.clip, task: data.task,
        level: Number(data.level), rater: state.rater, verdict: mine.verdict, note: mine.note,
        saw_truth: mine.peeked,
      }));
    }
    return out.map((line) => line + "\n").join("");
  }
  load();
  rater.value = state.rater;
  rater.addEventListener("input", () => { state.rater = rater.value.trim(); save(); });
  onlyOpen.addEventListener("change", show);
  bar.addEventListener("submit", (event) => event.preventDefault());
  for (const article of articles) {
    const reveal = article.querySelector(".reveal");
    const truth = article.querySelector(".truth");
    const note = article.querySelector(".note");
    note.value = (state.verdicts[article.dataset.sample] || {}).note || "";
    reveal.addEventListener("click", () => {
      truth.hidden = !truth.hidden;
      reveal.setAttribute("aria-expanded", String(!truth.hidden));
      reveal.textContent = truth.hidden ? "Show the truth" : "Hide the truth";
      if (!truth.hidden) { entry(article).peeked = true; save(); }
    });
    note.addEventListener("input", () => { entry(article).note = note.value; save(); });
    for (const button of article.querySelectorAll(".verdict")) {
      button.addEventListener("click", () => {
        const mine = entry(article);
        mine.verdict = mine.verdict === button.dataset.verdict ? "" : button.dataset.verdict;
        save();
        show();
      });
    }
  }
  document.getElementById("export").addEventListener("click", () => {
    if (!state.rater) { rater.focus(); progress.textContent = "Your name first, please"; return; }
    const name = state.rater.replace(/[^A-Za-z0-9_-]+/g, "_");
    if (download.href) URL.revokeObjectURL(download.href);
    download.href = URL.createObjectURL(new Blob([lines()], { type: "application/x-ndjson" }));
    download.download = "verdicts-" + bar.dataset.audit + "-" + name + ".jsonl";
    download.click();
  });
  show();
})();
