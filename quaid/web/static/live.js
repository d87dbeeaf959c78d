// Shows anew what has changed meanwhile: each part of the page with data-live and an id. Nothing here makes HTML.
"use strict";
(() => {
  // A browser has six connections for all pages, so one of them listens and tells the others.
  const others = new BroadcastChannel("quaid-live");
  const ended = document.getElementById("ended");
  let known, isListening = false, isBehind = false;

  const refresh = () => {
    isBehind = false;
    document.dispatchEvent(new Event("memory-changed"));
    for (const part of document.querySelectorAll("[data-live][id]")) {
      const one = `#${CSS.escape(part.id)}`;
      htmx.ajax("GET", location.pathname + location.search, { target: one, select: one, swap: "outerMorph" });
    }
  };

  const hear = ({ version, hasEnded, isNew, isAnswer }) => {
    if (isNew) {
      if (isListening && known !== undefined) others.postMessage({ version: known, isAnswer: true });
      return;
    }
    ended.hidden = !hasEnded;
    if (isAnswer) known ??= version;
    if (hasEnded || version === known) return;
    known = version;
    if (document.hidden) isBehind = true;
    else refresh();
  };

  others.onmessage = ({ data }) => hear(data);
  document.addEventListener("visibilitychange", () => isBehind && !document.hidden && refresh());

  const listen = () =>
    navigator.locks.request("quaid-live", () => new Promise((leave) => {
      isListening = true;
      const events = new EventSource("/live");
      events.onmessage = ({ data }) => {
        known ??= data;
        hear({ version: data });
        others.postMessage({ version: data });
      };
      events.onerror = () => {
        const told = { hasEnded: events.readyState === EventSource.CONNECTING };
        hear(told);
        others.postMessage(told);
      };
      window.addEventListener("pagehide", () => { events.close(); leave(); }, { once: true });
    }));

  others.postMessage({ isNew: true });
  window.addEventListener("pageshow", ({ persisted }) => persisted && listen());
  listen();
})();
