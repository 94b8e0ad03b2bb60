// Before the first paint, so that a dark page never flashes white.
(function () {
  var chosen = null;
  try {
    chosen = localStorage.getItem("toolyard_theme");
  } catch (ignored) {
    // A browser that keeps nothing shows what the system says.
  }
  var dark = chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  document.documentElement.dataset.theme = dark ? "dark" : "light";
})();
