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
