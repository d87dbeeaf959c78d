// Prints times in the browser's zone, and reloads each part of the page with data-live and an id when the memory changes.
// Nothing here makes HTML.
"use strict";
(() => {
  // Moments are printed in the zone of the browser, which may be another than that of the machine.
  const day = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "long", year: "numeric" });
  const clock = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
  const printTimes = () => {
    for (const element of document.querySelectorAll("time[data-local]")) {
      const moment = new Date(element.dateTime);
      if (!element.dateTime.includes("T") || Number.isNaN(moment.getTime())) continue;
      const texts = { moment: `${day.format(moment)}, ${clock.format(moment)}`, clock: clock.format(moment) };
      element.textContent = texts[element.dataset.local];
      element.title = `${moment.toLocaleString("en-GB", { dateStyle: "long", timeStyle: "long" })}`;
    }
    const offset = new Intl.DateTimeFormat("en-GB", { timeZoneName: "longOffset" }).formatToParts().find(({ type }) => type === "timeZoneName").value;
    document.getElementById("zone").textContent = `${Intl.DateTimeFormat().resolvedOptions().timeZone} (${offset})`;
  };
  printTimes();
  document.addEventListener("htmx:after:swap", printTimes);

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
