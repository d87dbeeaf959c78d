// The graph's page: what its form, its links and its picture ask for is shown without loading the page again, and the
// address says it.
"use strict";
(() => {
  const form = document.getElementById("graph-form"), figure = document.getElementById("graph");
  if (!form) return;
  const box = document.getElementById("drawing"), slider = document.getElementById("slider"), on = form.elements.on;
  const DAY_MS = 86_400_000, STEP = 60;
  let asked = 0, chosen;

  figure.hidden = false;
  form.querySelector("button:not([type])").hidden = true;  // what is chosen is shown at once
  const drawing = GraphDrawing.make(box, {
    onNode: (node) => focus(node.called),
    onLink: (link) => focus(link.source.called, link.target.name),
  });

  const draw = async () => {
    const number = ++asked;
    const answer = await fetch(`/graph.json${location.search}`);
    if (answer.ok && number === asked) drawing.show(await answer.json());
  };

  const mark = () => {
    for (const item of document.querySelectorAll("#about [data-with]")) {
      const isChosen = item.dataset.with === chosen;
      item.classList.toggle("chosen", isChosen);
      if (isChosen) item.scrollIntoView({ block: "nearest" });
    }
  };

  const fill = () => {
    const given = new URLSearchParams(location.search);
    for (const name of ["focus", "hops", "relation", "on"]) form.elements[name].value = given.get(name) ?? "";
    for (const field of form.querySelectorAll("[name=type]")) field.checked = given.getAll("type").includes(field.value);
    place();
  };

  const show = async (address, { isNew = true } = {}) => {
    if (isNew) history.pushState({}, "", address);
    const parts = ["#found", "#about", "#table"].map((one) => `${one}:outerMorph`).join();
    const load = htmx.ajax("GET", location.pathname + location.search, { target: "#main", select: "#main", swap: "none", selectOOB: parts });
    await Promise.all([draw(), load]);
    mark();
  };

  const read = () => {
    const given = new URLSearchParams([...new FormData(form)].filter(([, value]) => value));
    return `${location.pathname}?${given}`;
  };
  const submit = () => { chosen = undefined; show(read()); };
  const focus = (name, other) => {
    chosen = other;
    form.elements.focus.value = name;
    show(read());
  };

  // The day as a slider beside the field, which is what is asked.
  const first = Date.parse(slider.dataset.first) - DAY_MS, last = Date.parse(slider.dataset.last);
  const place = () => {
    const at = Date.parse(on.value);
    slider.value = Number.isNaN(at) ? slider.max : (at - first) / DAY_MS;
    slider.setAttribute("aria-valuetext", on.value || "any day");
  };
  slider.min = 0;
  slider.max = Math.round((last - first) / DAY_MS);
  document.getElementById("day").hidden = false;
  let waiting;
  slider.addEventListener("input", () => {
    on.value = new Date(first + slider.value * DAY_MS).toISOString().slice(0, 10);
    place();
    clearTimeout(waiting);
    waiting = setTimeout(submit, 150);
  });
  document.getElementById("any-day").addEventListener("click", () => { on.value = ""; place(); submit(); });

  form.addEventListener("submit", (event) => { event.preventDefault(); submit(); });
  form.addEventListener("change", ({ target }) => { if (target !== slider) { place(); submit(); } });
  document.getElementById("main").addEventListener("click", (event) => {
    const link = event.target.closest("a[href]");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey || link.pathname !== location.pathname || link.hash) return;
    event.preventDefault();
    chosen = undefined;
    show(link.href).then(fill);
  });
  window.addEventListener("popstate", () => { fill(); show("", { isNew: false }); });
  // htmx would replace the page, and with it the drawing.
  document.addEventListener("htmx:before:history:restore", (event) => event.preventDefault());
  document.addEventListener("memory-changed", draw);

  const actions = {
    in: () => drawing.zoom(1.4),
    out: () => drawing.zoom(1 / 1.4),
    fit: () => drawing.fit(),
    svg: () => GraphExport.asSvg(drawing),
    canvas: () => GraphExport.asCanvas(drawing),
  };
  figure.addEventListener("click", ({ target }) => actions[target.closest("button")?.dataset.do]?.());
  const keys = {
    ArrowLeft: () => drawing.move(-STEP, 0), ArrowRight: () => drawing.move(STEP, 0),
    ArrowUp: () => drawing.move(0, -STEP), ArrowDown: () => drawing.move(0, STEP),
    "+": actions.in, "=": actions.in, "-": actions.out, 0: actions.fit,
  };
  box.addEventListener("keydown", (event) => {
    if (!keys[event.key] || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    keys[event.key]();
  });

  place();
  draw();
})();
