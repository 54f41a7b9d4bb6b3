// Verdicts are kept in this browser (localStorage) by draw and rater, and exported as JSON lines.
"use strict";
(function () {
  const bar = document.getElementById("bar");
  const rater = document.getElementById("rater");
  const onlyOpen = document.getElementById("only-open");
  const progress = document.getElementById("progress");
  const download = document.getElementById("download");
  const articles = Array.from(document.querySelectorAll("article[data-sample]"));
  const place = "rvt-ray-audit-" + bar.dataset.audit;
  const last = place + "-rater"; // who judged here last
  const memory = new Map(); // what was judged since the page was opened, for a browser that keeps nothing
  let state = { rater: "", verdicts: {} };
  let keeps = true;

  function read(key) {
    try {
      return localStorage.getItem(key);
    } catch (error) {
      keeps = false;
      return null;
    }
  }
  function write(key, text) {
    try {
      localStorage.setItem(key, text);
    } catch (error) {
      keeps = false;
    }
  }
  function verdictsOf(name) {
    if (memory.has(name)) return memory.get(name);
    try {
      return JSON.parse(read(place + ":" + name)) || {};
    } catch (error) {
      return {}; // not ours, or cut short
    }
  }
  function save() {
    memory.set(state.rater, state.verdicts);
    write(place + ":" + state.rater, JSON.stringify(state.verdicts));
  }
  // Each rater's verdicts are his own: nothing is judged before there is a name to keep it under.
  function named() {
    if (state.rater) return true;
    rater.focus();
    progress.textContent = "Your name first, please";
    return false;
  }
  function become(name) {
    state = { rater: name, verdicts: name ? verdictsOf(name) : {} };
    for (const article of articles) {
      const note = article.querySelector(".note");
      note.value = (state.verdicts[article.dataset.sample] || {}).note || "";
      note.disabled = !name;
      reveal(article, false); // the next rater is not shown what the last one asked to see
    }
    show();
  }
  function reveal(article, shown) {
    const button = article.querySelector(".reveal");
    article.querySelector(".truth").hidden = !shown;
    button.setAttribute("aria-expanded", String(shown));
    button.textContent = shown ? "Hide the truth" : "Show the truth";
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
    if (!keeps) progress.textContent += ". This browser keeps nothing: export before you close the page";
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
  rater.addEventListener("input", () => {
    const name = rater.value.trim();
    if (name === state.rater) return;
    become(name);
    write(last, name);
  });
  onlyOpen.addEventListener("change", show);
  bar.addEventListener("submit", (event) => event.preventDefault());
  for (const article of articles) {
    const truth = article.querySelector(".truth");
    const note = article.querySelector(".note");
    article.querySelector(".reveal").addEventListener("click", () => {
      if (!named()) return;
      reveal(article, truth.hidden);
      if (!truth.hidden) { entry(article).peeked = true; save(); }
    });
    note.addEventListener("input", () => { entry(article).note = note.value; save(); });
    for (const button of article.querySelectorAll(".verdict")) {
      button.addEventListener("click", () => {
        if (!named()) return;
        const mine = entry(article);
        mine.verdict = mine.verdict === button.dataset.verdict ? "" : button.dataset.verdict;
        save();
        show();
      });
    }
  }
  document.getElementById("export").addEventListener("click", () => {
    if (!named()) return;
    const name = state.rater.replace(/[^A-Za-z0-9_-]+/g, "_");
    if (download.href) URL.revokeObjectURL(download.href);
    download.href = URL.createObjectURL(new Blob([lines()], { type: "application/x-ndjson" }));
    download.download = "verdicts-" + bar.dataset.audit + "-" + name + ".jsonl";
    download.click();
  });
  rater.value = read(last) || "";
  become(rater.value);
})();
