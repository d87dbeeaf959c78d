// The questions by keyboard: j and k go from one to the next, the keys on the buttons press those of the one in focus.
"use strict";
(() => {
  const hint = document.getElementById("keys");
  const isOn = document.getElementById("keys-on");
  const cards = () => [...document.querySelectorAll(".review")];
  const current = () => document.activeElement?.closest?.(".review");

  const go = (card) => {
    card?.focus();
    card?.scrollIntoView({ block: "start" });
  };

  const move = (step) => {
    const all = cards();
    const at = all.indexOf(current());
    go(all[at < 0 ? (step > 0 ? 0 : all.length - 1) : Math.min(all.length - 1, Math.max(0, at + step))]);
  };

  const press = (key) => {
    const button = current()?.querySelector(`button[data-key="${CSS.escape(key)}"]`);
    if (!button) return false;
    button.click();
    return true;
  };

  hint.hidden = false;
  isOn.checked = localStorage.getItem("review-keys") !== "off";
  isOn.addEventListener("change", () => localStorage.setItem("review-keys", isOn.checked ? "on" : "off"));

  document.addEventListener("keydown", (event) => {
    if (!isOn.checked || event.ctrlKey || event.metaKey || event.altKey || event.repeat || event.isComposing) return;
    if (event.target.closest?.("input:not([type=checkbox]), textarea, select, [contenteditable]")) return;
    if (event.key === "j") move(1);
    else if (event.key === "k") move(-1);
    else if (event.key === "?") isOn.focus();
    else if (!press(event.key)) return;
    event.preventDefault();
  });

  const asked = document.getElementById(location.hash.slice(1));
  if (asked?.matches(".review")) go(asked);
})();
