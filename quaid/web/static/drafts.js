// Stores what is typed into a form in this tab until it is saved, so that neither a restart of quaid view nor a reload
// loses it. Nothing here makes HTML.
"use strict";
(() => {
  const PREFIX = "draft:";
  const isTyped = (field) => field.matches("textarea[name], input[name]:not([type=hidden], [type=checkbox], [type=radio])") && !field.readOnly;
  const typed = (form) => [...form.elements].filter(isTyped);
  const forms = () => [...document.querySelectorAll("form[method=post]")].filter((form) => typed(form).length);

  // A form is known by its address and its hidden fields, without the token and the text that it began with.
  const keyOf = (form) => {
    const hidden = [...form.querySelectorAll("input[type=hidden]")].filter(({ name }) => !["form_token", "before"].includes(name));
    return `${PREFIX}${form.getAttribute("action")}?${new URLSearchParams(hidden.map(({ name, value }) => [name, value]))}`;
  };
  const read = (key) => JSON.parse(sessionStorage.getItem(key) ?? "null");
  const remove = (form) => sessionStorage.removeItem(keyOf(form));

  const store = (form, isSent = false) => {
    const fields = typed(form);
    const hasText = !fields.every((field) => field.value === field.defaultValue);
    form.toggleAttribute("data-typed", hasText);  // a live update leaves it as it is
    if (!hasText && !("unsaved" in form.dataset)) return remove(form);
    const values = Object.fromEntries(fields.map(({ name, value }) => [name, value]));
    try {
      sessionStorage.setItem(keyOf(form), JSON.stringify({ values, before: form.elements.before?.value, version: form.dataset.version, isSent }));
    } catch { /* it is full: the page still asks before it is left */ }
  };

  const offerDiscard = (form, discard) => {
    const note = document.createElement("p"), button = document.createElement("button");
    note.className = "mark";
    note.setAttribute("role", "status");
    note.textContent = "What you wrote here and did not save is in the form again. ";
    button.type = "button";
    button.className = "second";
    button.textContent = "Discard it";
    button.addEventListener("click", () => { discard(); note.remove(); });
    note.append(button);
    form.prepend(note);
  };

  const restore = (form) => {
    if ("unsaved" in form.dataset) return store(form);
    const draft = read(keyOf(form));
    if (!draft) return;
    const fields = typed(form).filter(({ name }) => name in draft.values);
    if (fields.every(({ name, value }) => value === draft.values[name])) return;
    const before = form.elements.before, now = before?.value, { version } = form.dataset;
    for (const field of fields) field.value = draft.values[field.name];
    if (draft.before && before) {  // a save merges what was changed on disk since
      before.value = draft.before;
      form.dataset.version = draft.version;
    }
    store(form);
    form.closest("details")?.setAttribute("open", "");
    offerDiscard(form, () => {
      for (const field of fields) field.value = field.defaultValue;
      if (before) {
        before.value = now;
        form.dataset.version = version;
      }
      remove(form);
    });
  };

  // What is typed in a form that a live update takes away, as that of a question which is answered elsewhere, is shown.
  let typing = [];
  document.addEventListener("htmx:before:swap", () => { typing = [...document.querySelectorAll("form[data-typed]")]; });
  document.addEventListener("htmx:after:swap", () => {
    for (const form of typing.filter((each) => !each.isConnected)) {
      const note = document.createElement("div"), sentence = document.createElement("p"), text = document.createElement("textarea");
      note.className = "mark";
      note.setAttribute("role", "status");
      sentence.textContent = "What you wrote was on a part of the page that is gone. It is not saved:";
      text.readOnly = true;
      text.setAttribute("aria-label", "What you wrote");
      text.value = typed(form).filter((field) => field.value !== field.defaultValue).map(({ value }) => value).join("\n");
      note.append(sentence, text);
      document.getElementById("main").prepend(note);
    }
    typing = [];
  });

  // A page with a message about an action is the answer to a form that was sent from this tab.
  if (document.querySelector("div.said[role=status]")) {
    for (const key of Object.keys(sessionStorage)) if (key.startsWith(PREFIX) && read(key)?.isSent) sessionStorage.removeItem(key);
  }
  forms().forEach(restore);
  document.addEventListener("input", ({ target }) => { if (target.form?.method === "post" && isTyped(target)) store(target.form); });
  document.addEventListener("submit", ({ target }) => { if (target.method === "post" && typed(target).length) store(target, true); });
  document.addEventListener("click", ({ target }) => { if (target.matches("[data-discard]")) remove(target.closest("form")); });
})();
