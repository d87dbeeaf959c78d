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
  const RETRY_MS = 2000;
  const ended = document.getElementById("ended"), locked = document.getElementById("locked");
  let known, isListening = false, isBehind = false;

  const refresh = () => {
    isBehind = false;
    document.dispatchEvent(new Event("memory-changed"));
    const parts = [...document.querySelectorAll("[data-live][id]")].map(({ id }) => `#${CSS.escape(id)}:outerMorph`);
    const query = new URLSearchParams(location.search);
    for (const name of ["said", "commit"]) query.delete(name);  // what was done is said once
    htmx.ajax("GET", `${location.pathname}?${query}`, { target: "#main", select: "#main", swap: "none", selectOOB: parts.join(), isLive: true });
  };

  // A page that answered a form is at an address that shows none: only the counts of its frame are reloaded. A page that
  // became another one, as of a note that was forgotten or renamed, is replaced as a whole: its buttons are
  // of the old one. A page without a live part, as a form, stays.
  document.addEventListener("htmx:after:request", ({ detail: { ctx } }) => {
    if (!ctx.isLive || ctx.response.status === 405) return Object.assign(ctx, ctx.isLive && { selectOOB: "#frame:outerMorph" });
    if (!document.querySelector("#main [data-live]")) return;
    const page = new DOMParser().parseFromString(ctx.text, "text/html");
    if (page.getElementById("main")?.dataset.page === document.getElementById("main").dataset.page) return;
    document.title = page.title;
    Object.assign(ctx, { swap: "outerHTML", selectOOB: "#frame:outerMorph" });
  });

  // The focus is not lost with what had it: it goes to the part of the page around that. A button never hands it on.
  let focused = [];
  document.addEventListener("htmx:before:swap", () => {
    focused = [];
    for (let each = document.activeElement; each && each !== document.body; each = each.parentElement) focused.push(each);
  });
  document.addEventListener("htmx:after:swap", () => {
    if (!focused.length || (document.activeElement && document.activeElement !== document.body)) return;
    const around = focused.find((each) => each.isConnected) ?? document.getElementById("main");
    if (around.tabIndex < 0) around.tabIndex = -1;
    around.focus({ preventScroll: true });
  });
  const hear = ({ version, hasEnded, isLocked, isNew, isAnswer }) => {
    if (isNew) {
      if (isListening && known !== undefined) others.postMessage({ version: known, isAnswer: true });
      return;
    }
    ended.hidden = !hasEnded;
    locked.hidden = !isLocked;
    if (isAnswer) known ??= version;
    if (version === undefined || version === known) return;
    known = version;
    if (document.hidden) isBehind = true;
    else refresh();
  };

  others.onmessage = ({ data }) => hear(data);
  document.addEventListener("visibilitychange", () => isBehind && !document.hidden && refresh());

  const report = (message) => { hear(message); others.postMessage(message); };

  const listen = () =>
    navigator.locks.request("quaid-live", () => new Promise((leave) => {
      isListening = true;
      let events, hasLeft = false;
      const open = () => {
        if (hasLeft) return;
        events = new EventSource("/live");
        events.onmessage = ({ data }) => { known ??= data; report({ version: data }); };
        events.onerror = async () => {
          if (events.readyState === EventSource.CONNECTING) return report({ hasEnded: true });
          // It is refused: by a server with other keys, or as one page too many, or a proxy answers for the server.
          const status = await fetch("/live", { method: "HEAD" }).then((answer) => answer.status, () => 0);
          report({ hasEnded: status === 0, isLocked: status === 403 });
          setTimeout(open, RETRY_MS);
        };
      };
      open();
      window.addEventListener("pagehide", () => { hasLeft = true; events.close(); leave(); }, { once: true });
    }));

  others.postMessage({ isNew: true });
  window.addEventListener("pageshow", ({ persisted }) => persisted && listen());
  listen();
})();
