// Runs before the first paint, so a chosen theme does not flash.
(() => {
  const kept = localStorage.getItem("crossdock-theme");
  if (kept === "light" || kept === "dark") document.documentElement.dataset.theme = kept;
})();
