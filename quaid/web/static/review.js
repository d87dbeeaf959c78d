// The questions by keyboard: the key on a button or link presses it, and `u` undoes the last answer.
"use strict";
(() => {
  const hint = document.getElementById("keys");
  const isOn = document.getElementById("keys-on");
  const isUsed = () => localStorage.getItem("review-keys") !== "off";

  if (hint) {
    hint.hidden = false;
    isOn.checked = isUsed();
    isOn.addEventListener("change", () => localStorage.setItem("review-keys", isOn.checked ? "on" : "off"));
  }

  document.addEventListener("keydown", (event) => {
    if (!isUsed() || event.ctrlKey || event.metaKey || event.altKey || event.repeat || event.isComposing) return;
    if (event.target.closest?.("input:not([type=checkbox]), textarea, select, [contenteditable]")) return;
    const pressed = event.key === "u"
      ? document.querySelector("div.said button")
      : document.querySelector(`.answers [data-key="${CSS.escape(event.key)}"], .place [data-key="${CSS.escape(event.key)}"]`);
    if (!pressed) return;
    pressed.click();
    event.preventDefault();
  });
})();
