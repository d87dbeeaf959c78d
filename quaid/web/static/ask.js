// Ask: the slider over the history, and what a screen reader is told of an answer. Nothing here makes HTML.
"use strict";
(() => {
  const form = document.getElementById("ask"), status = document.getElementById("status");
  const asOf = document.getElementById("as_of"), slider = document.getElementById("day");
  const now = document.getElementById("now"), DAY_MS = 86400000;

  const dayAt = (value) => new Date(Date.parse(slider.dataset.first) + value * DAY_MS).toISOString().slice(0, 10);
  const isNow = () => Number(slider.value) >= Number(slider.max);
  const ask = () => form.dispatchEvent(new Event("input", { bubbles: true }));

  const say = (text, isWaiting) => {
    status.textContent = text;
    status.className = isWaiting ? "waiting" : "quiet";
  };

  const showDay = () => {
    asOf.value = isNow() ? "" : dayAt(slider.value);
    slider.setAttribute("aria-valuetext", isNow() ? "now" : asOf.value);
    now.hidden = asOf.value === "";
  };

  const takeDay = () => {
    const days = Math.round((Date.parse(asOf.value) - Date.parse(slider?.dataset.first)) / DAY_MS);
    now.hidden = asOf.value === "";
    if (!slider) return;
    if (asOf.value === "" || days >= 0) slider.value = asOf.value === "" ? slider.max : days;
    slider.setAttribute("aria-valuetext", asOf.value || "now");
  };

  if (slider) {
    document.getElementById("slider").hidden = false;
    // The day moves with the slider, the question is asked where it stops: a day may take seconds.
    slider.addEventListener("input", (event) => { event.stopPropagation(); showDay(); });
    slider.addEventListener("change", () => { showDay(); ask(); });
  }
  asOf.addEventListener("input", takeDay);
  now.addEventListener("click", () => {
    asOf.value = "";
    takeDay();
    ask();
    (slider ?? asOf).focus();
  });
  takeDay();

  document.addEventListener("htmx:before:request", () => {
    const asked = new FormData(form).get("as_of");
    if (asked) say(`Looking at the memory as it was: ${asked}. The first time, its index is built from the history.`, true);
  });
  document.addEventListener("htmx:after:swap", () => {
    const summary = document.querySelector("#answer [data-summary]");
    say(summary ? summary.textContent.trim().replace(/\s+/g, " ") : "", false);
  });
  document.addEventListener("htmx:error", () => say("The memory does not answer. Is quaid view still running?", true));
})();
