// The table of memories: filters are applied at once, rows are selected, and keys move between them.
"use strict";
(() => {
  const filters = document.getElementById("filters"), text = document.getElementById("text");
  const hint = document.getElementById("keys"), isOn = document.getElementById("keys-on");
  const table = () => document.getElementById("memories");
  const rows = () => [...document.querySelectorAll(".memories tbody tr")];
  const boxes = () => [...document.querySelectorAll(".memories tbody input[type=checkbox]")];
  let waiting, chosen = new Set();

  const count = () => {
    const all = document.getElementById("all");
    if (!all) return;
    const picked = boxes().filter((box) => box.checked);
    chosen = new Set(picked.map((box) => box.name));
    document.querySelector(".selected").textContent = picked.length ? `${picked.length} selected` : "None selected";
    for (const button of document.querySelectorAll(".bulk button")) button.disabled = !picked.length;
    all.hidden = false;
    all.checked = picked.length === boxes().length;
    all.indeterminate = picked.length > 0 && !all.checked;
  };

  const apply = async () => {
    const given = new URLSearchParams([...new FormData(filters)].filter(([, value]) => value));
    history.replaceState({}, "", given.size ? `${location.pathname}?${given}` : location.pathname);
    await htmx.ajax("GET", location.pathname + location.search, { target: "#memories", select: "#memories", swap: "outerMorph" });
  };

  filters.addEventListener("submit", (event) => { event.preventDefault(); apply(); });
  text.addEventListener("input", () => { clearTimeout(waiting); waiting = setTimeout(apply, 250); });
  document.addEventListener("change", ({ target }) => {
    if (target.form === filters && target !== text) apply();
    else if (target.id === "all") { for (const box of boxes()) box.checked = target.checked; count(); }
    else if (target.closest(".memories")) count();
  });
  document.addEventListener("htmx:after:swap", () => {
    for (const box of boxes()) box.checked = chosen.has(box.name);
    count();
  });

  const move = (step) => {
    const all = rows(), at = all.indexOf(document.activeElement?.closest?.(".memories tbody tr"));
    const row = all[at < 0 ? (step > 0 ? 0 : all.length - 1) : Math.min(all.length - 1, Math.max(0, at + step))];
    row?.focus();
    row?.scrollIntoView({ block: "nearest" });
  };
  const press = (event) => {
    const row = document.activeElement?.closest?.(".memories tbody tr");
    if (event.key === "j" || event.key === "ArrowDown") move(1);
    else if (event.key === "k" || event.key === "ArrowUp") move(-1);
    else if (event.key === "/") { text.focus(); text.select(); }
    else if (event.key === "x" && row) { row.querySelector("input").click(); row.focus(); }
    else if (event.key === "Enter" && row === document.activeElement) row.querySelector("td.text a").click();
    else return false;
    return true;
  };
  document.addEventListener("keydown", (event) => {
    if (!isOn.checked || event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
    if (event.target.closest?.("input:not([type=checkbox]), textarea, select, [contenteditable]")) return;
    if (event.key.startsWith("Arrow") && !event.target.closest?.(".memories")) return;
    if (press(event)) event.preventDefault();
  });

  hint.hidden = false;
  isOn.checked = localStorage.getItem("review-keys") !== "off";
  isOn.addEventListener("change", () => localStorage.setItem("review-keys", isOn.checked ? "on" : "off"));
  count();
})();
