// Filters the cards of the index page. Without JavaScript all cards are shown.
"use strict";
(function () {
  const text = document.getElementById("filter");
  const task = document.getElementById("filter-task");
  const count = document.getElementById("filter-count");
  if (!text || !task || !count) return;
  const cards = Array.from(document.querySelectorAll(".card"));
  function apply() {
    const words = text.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const card of cards) {
      const fits =
        words.every((word) => card.dataset.search.includes(word)) &&
        (!task.value || card.dataset.tasks.split(" ").includes(task.value));
      card.hidden = !fits;
      if (fits) shown += 1;
    }
    count.textContent = shown + " of " + cards.length + " clips shown";
  }
  text.addEventListener("input", apply);
  task.addEventListener("change", apply);
  text.form.addEventListener("submit", (event) => event.preventDefault());
})();
