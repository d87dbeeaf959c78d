// Shows anew what has changed meanwhile: each part of the page with data-live and an id. Nothing here makes HTML.
"use strict";
(() => {
  let known, events;

  const refresh = () => {
    document.dispatchEvent(new Event("memory-changed"));
    for (const part of document.querySelectorAll("[data-live][id]")) {
      const one = `#${CSS.escape(part.id)}`;
      htmx.ajax("GET", location.pathname + location.search, { target: one, select: one, swap: "outerMorph" });
    }
  };

  const listen = () => {
    events?.close();
    events = undefined;
    // A browser has six connections for all tabs: one that nobody sees needs none.
    if (document.visibilityState === "hidden") return;
    events = new EventSource("/live");
    events.onmessage = ({ data }) => {
      if (known !== undefined && known !== data) refresh();
      known = data;
    };
  };

  document.addEventListener("visibilitychange", listen);
  window.addEventListener("pagehide", () => events?.close());
  window.addEventListener("pageshow", ({ persisted }) => persisted && listen());
  listen();
})();
