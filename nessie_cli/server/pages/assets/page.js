// Shows times in the reader's time zone. Without scripts they stay in UTC.
"use strict";
(() => {
  const format = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });
  const localize = () => {
    for (const time of document.querySelectorAll("time[datetime]:not([title])")) {
      time.title = time.textContent;
      time.textContent = format.format(new Date(time.dateTime));
    }
  };
  document.addEventListener("DOMContentLoaded", localize);
  // Choices that are not sent yet are in the address, so Back and Reload show them.
  document.addEventListener("change", (event) => {
    const form = event.target.form;
    if (form?.id !== "preview") return;
    const sent = new FormData(form);
    sent.delete("request");
    const shown = new URLSearchParams(location.search);
    for (const part of ["conflicts", "page"]) {
      if (shown.has(part)) sent.set(part, shown.get(part));
    }
    const address = `${form.getAttribute("action")}?${new URLSearchParams(sent)}`;
    // The server takes no longer one than 64 KiB, with the headers of the request.
    if (address.length < 50000) history.replaceState(history.state, "", address);
  });
  // A request without an answer: the page stays, and says so.
  document.addEventListener("htmx:error", (event) => {
    if (!event.detail?.ctx || event.detail.ctx.response) return;
    const alert = document.createElement("p");
    alert.className = "error";
    alert.setAttribute("role", "alert");
    alert.textContent = "The server does not answer. Try again later.";
    const main = document.getElementById("main");
    main.querySelector(":scope > [role=alert]")?.remove();
    main.prepend(alert);
  });
  // After htmx has replaced the page, the reader continues at its heading.
  document.addEventListener("htmx:after:swap", () => {
    localize();
    document.getElementById("main")?.focus({ preventScroll: true });
  });
})();
