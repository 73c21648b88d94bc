// Times in the browser's zone, live numbers, keyboard and theme. Pages can be read without it.
(() => {
  "use strict";
  const root = document.documentElement;
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];

  // Times: the server writes UTC. The text becomes local time, and UTC moves to the tooltip.
  const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit", hour12: false });
  const day = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit", hour12: false });
  const whole = new Intl.DateTimeFormat(undefined, { year: "numeric", month: "short", day: "numeric", hour: "2-digit", minute: "2-digit", hour12: false });
  const localTimes = (within) => {
    const now = new Date();
    for (const element of all("time[datetime]", within)) {
      const at = new Date(element.dateTime);
      if (Number.isNaN(at.getTime())) continue;
      const form = at.toDateString() === now.toDateString() ? clock : at.getFullYear() === now.getFullYear() ? day : whole;
      element.title = `${element.dateTime.replace("T", " ").replace(/\.\d+/, "").replace("Z", "")} UTC`;
      element.textContent = form.format(at);
    }
  };

  // Theme: system, unless the toggle has been used.
  const dark = () => root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  const redraw = () => document.dispatchEvent(new CustomEvent("theme"));
  const toggleTheme = () => {
    root.dataset.theme = dark() ? "light" : "dark";
    localStorage.setItem("crossdock-theme", root.dataset.theme);
    redraw();
  };
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);

  // Live numbers: the server sends formatted texts by name. Lists fetch themselves again every few seconds.
  const REFRESH_MS = 5000;
  let refreshed = Date.now();
  const show = (values) => {
    for (const element of all("[data-live]")) {
      const text = values[element.dataset.live];
      if (text !== undefined && element.textContent !== text) element.textContent = text;
    }
    for (const element of all("progress[data-live-value]")) {
      const value = values[element.dataset.liveValue];
      if (value !== undefined) element.value = value;
    }
  };
  const busy = () => document.hidden || all("input[name=id]:checked").length > 0 || document.querySelector("dialog[open], .at");
  const refresh = () => {
    if (!window.htmx || busy() || Date.now() - refreshed < REFRESH_MS) return;
    refreshed = Date.now();
    for (const element of all("[data-refresh]")) {
      window.htmx.ajax("GET", location.pathname + location.search, { target: element, select: `#${element.id}`, swap: "outerHTML" });
    }
    document.dispatchEvent(new CustomEvent("tick"));
  };
  const listen = () => {
    const lamp = document.querySelector(".live");
    if (!lamp || !window.EventSource) return;
    const label = lamp.querySelector("span");
    const say = (state, text) => { lamp.dataset.state = state; label.textContent = text; };
    let source = null;
    const open = () => {
      source = new EventSource("/live");
      source.addEventListener("numbers", (event) => { say("on", "live"); show(JSON.parse(event.data)); refresh(); });
      source.addEventListener("unavailable", () => say("lost", "no server"));
      source.addEventListener("full", () => { source.close(); say("off", "not live"); });
      source.onerror = () => say("lost", "reconnecting");
    };
    open();
    document.addEventListener("visibilitychange", () => {
      if (document.hidden) { source.close(); say("off", "paused"); } else { open(); }
    });
    addEventListener("pagehide", () => source.close());
  };

  // Keyboard: / search, j and k move in the list, Enter opens, x ticks, ? help.
  let row = -1;
  const rows = () => all("main tbody tr[data-href]");
  const move = (step) => {
    const list = rows();
    if (!list.length) return;
    row = Math.max(0, Math.min(list.length - 1, row + step));
    list.forEach((each, index) => each.classList.toggle("at", index === row));
    list[row].scrollIntoView({ block: "nearest" });
  };
  const keys = {
    "/": () => document.querySelector("#search").focus(),
    "j": () => move(1),
    "k": () => move(-1),
    "Enter": () => { const at = rows()[row]; if (at) location.href = at.dataset.href; },
    "x": () => { const box = rows()[row]?.querySelector("input[type=checkbox]"); if (box) { box.checked = !box.checked; counted(); } },
    "?": () => document.querySelector("#help").showModal(),
    "t": toggleTheme,
  };
  document.addEventListener("keydown", (event) => {
    const typing = event.target.closest("input, textarea, select, dialog");
    if (event.key === "Escape" && typing) typing.blur();
    if (event.key === "Escape") { row = -1; rows().forEach((each) => each.classList.remove("at")); }
    if (typing || event.ctrlKey || event.metaKey || event.altKey || !keys[event.key]) return;
    if (event.key === "Enter" && (row < 0 || event.target.closest("a, button, summary"))) return;
    event.preventDefault();
    keys[event.key]();
  });

  // Checkboxes: one that ticks the page, and the number of ticked rows.
  const counted = () => {
    const ticked = all("input[name=id]:checked").length;
    for (const element of all("[data-ticked]")) element.textContent = ticked ? `${ticked} selected` : element.dataset.ticked;
    for (const button of all("[data-needs-ticks]")) button.disabled = ticked === 0;
  };
  document.addEventListener("change", (event) => {
    if (event.target.matches("[data-tick-all]")) for (const box of all("input[name=id]")) box.checked = event.target.checked;
    if (event.target.matches("input[type=checkbox]")) counted();
    if (event.target.matches("[data-submit]")) event.target.form.requestSubmit();
  });
  document.addEventListener("click", (event) => {
    if (event.target.closest("[data-theme-toggle]")) toggleTheme();
    if (event.target.closest("[data-help]")) document.querySelector("#help").showModal();
    const copy = event.target.closest("[data-copy]");
    if (copy) navigator.clipboard.writeText(copy.closest("[data-copied]").querySelector("code, pre").textContent).then(() => {
      copy.textContent = "Copied";
      setTimeout(() => { copy.textContent = "Copy"; }, 1500);
    });
  });

  localTimes(document);
  counted();
  listen();
  for (const form of all("form[data-continue]")) form.requestSubmit();
  document.addEventListener("htmx:afterSwap", (event) => {
    localTimes(document);
    counted();
    document.dispatchEvent(new CustomEvent("charts", { detail: event.target }));
  });
})();
