// Copies the markdown of a note or the link to its page, and prints the page. Without scripts there is the download.
"use strict";
(() => {
  for (const tools of document.querySelectorAll(".tools [hidden]")) tools.hidden = false;
  document.addEventListener("click", async ({ target }) => {
    const button = target.closest?.("[data-copy], [data-print]");
    if (!button) return;
    if (button.dataset.print !== undefined) return print();
    const label = button.textContent;
    try {
      const answer = button.dataset.copy && await fetch(button.dataset.copy);
      if (answer && !answer.ok) throw new Error();
      await navigator.clipboard.writeText(answer ? await answer.text() : location.origin + location.pathname);
      button.textContent = "Copied";
    } catch {
      button.textContent = "The browser did not allow it";
    }
    setTimeout(() => { button.textContent = label; }, 2000);
  });
})();
