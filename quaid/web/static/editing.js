// Beside the form of a note: warns before what was written is left, saves by Ctrl or Cmd and S, and tells when the note
// has changed on disk meanwhile. Without it the form works as well.
"use strict";
(() => {
  const form = document.querySelector("form.editor");
  const text = form.querySelector("textarea");
  let isSaving = false;

  window.addEventListener("beforeunload", (event) => {
    const isWritten = "unsaved" in form.dataset || text.value !== text.defaultValue;
    if (isWritten && !isSaving) event.preventDefault();
  });
  window.addEventListener("pageshow", () => { isSaving = false; });
  form.addEventListener("submit", () => { isSaving = true; });

  document.addEventListener("keydown", (event) => {
    if ((event.ctrlKey || event.metaKey) && !event.altKey && event.key.toLowerCase() === "s") {
      event.preventDefault();
      form.requestSubmit();
    }
  });

  document.addEventListener("memory-changed", async () => {
    const answer = await fetch(form.dataset.watch);
    const version = answer.ok ? await answer.text() : "";
    document.getElementById("meanwhile").hidden = version === form.dataset.version;
  });
})();
