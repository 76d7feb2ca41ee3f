// This script runs before anything is drawn. It sets the theme that the reader chose, or else the system's theme.
(() => {
  const root = document.documentElement;
  const system = matchMedia("(prefers-color-scheme: dark)");
  const apply = () => root.setAttribute("data-bs-theme", root.dataset.theme || (system.matches ? "dark" : "light"));
  system.addEventListener("change", apply);
  addEventListener("beforeprint", () => root.setAttribute("data-bs-theme", "light")); // paper is white, and backgrounds are not printed
  addEventListener("afterprint", apply);
  apply();
  globalThis.puntualeTheme = {
    toggle() {
      const dark = root.getAttribute("data-bs-theme") !== "dark";
      root.dataset.theme = dark ? "dark" : "light";
      document.cookie = `theme=${root.dataset.theme}; path=/; max-age=31536000; samesite=lax`;
      apply();
    },
  };
})();
