// The search of every page: Ctrl+K or "/" opens it, arrows choose, Enter opens. The last searches are stored only in this
// browser, for this user, until the user signs out.
(() => {
  const dialog = () => document.getElementById("find");
  const field = () => document.getElementById("find-text");
  const prefix = "puntuale:found:", kept = 6;
  const key = () => prefix + (document.body.dataset.user ?? "") + ":" + (dialog()?.dataset.scope ?? "");

  const read = () => {
    try {
      const all = JSON.parse(localStorage.getItem(key()));
      return Array.isArray(all) ? all.filter((text) => typeof text === "string").slice(0, kept) : [];
    } catch { return []; }
  };
  const write = (all) => {
    try { all.length ? localStorage.setItem(key(), JSON.stringify(all.slice(0, kept))) : localStorage.removeItem(key()); } catch { /* the storage may be full or forbidden; then nothing is kept */ }
  };
  const keep = (text) => {
    text = text.trim();
    if (text.length > 1) write([text, ...read().filter((other) => other.toLowerCase() !== text.toLowerCase())]);
  };

  const showRecent = () => {
    const box = document.getElementById("find-recent");
    if (!box) return;
    const all = field().value.trim() ? [] : read();
    box.hidden = all.length === 0;
    box.querySelector("ul").replaceChildren(...all.map((text) => {
      const item = document.createElement("li"), button = document.createElement("button");
      button.type = "button";
      button.className = "find find-again";
      button.textContent = text;
      button.addEventListener("click", () => {
        field().value = text;
        field().focus();
        field().dispatchEvent(new Event("input", { bubbles: true }));
      });
      item.append(button);
      return item;
    }));
  };

  const open = () => {
    const box = dialog();
    if (!box) return false;
    if (!box.open) {
      if (document.querySelector("dialog[open]")) return false;
      box.showModal();
      showRecent();
    }
    field().focus();
    field().select();
    return true;
  };

  const types = (at) => at instanceof Element && (at.isContentEditable || at.matches("input, textarea, select"));
  document.addEventListener("keydown", (event) => {
    const letter = event.key.toLowerCase();
    const asked = letter === "k" && (event.ctrlKey || event.metaKey) && !event.altKey && !event.shiftKey ||
      event.key === "/" && !event.ctrlKey && !event.metaKey && !event.altKey && !types(event.target);
    if (asked && open()) event.preventDefault();
  });
  document.addEventListener("click", (event) => {
    const at = event.target instanceof Element ? event.target : null;
    const link = at?.closest("[data-find]");
    if (link && !event.ctrlKey && !event.metaKey && !event.shiftKey && open()) event.preventDefault();
    if (at?.closest("#find [data-forget]")) { write([]); showRecent(); field().focus(); }
    if (at?.closest("[data-finds] a")) keep(words(at));
  });

  // The field to which a place in the results belongs: the dialog's, or the page's.
  const fieldOf = (at) => at.closest("#find") ? field() : document.querySelector("main [role=search] input[name=text]");
  const words = (at) => fieldOf(at)?.value ?? "";
  const answered = { dialog: "", page: "" }; // the texts whose results are shown
  const place = (at) => at.closest("#find") ? "dialog" : "page";

  document.addEventListener("htmx:before:request", (event) => {
    const at = event.target;
    if (at instanceof HTMLFormElement && at.closest("#find")) at.dataset.asked = field().value;
  });
  document.addEventListener("htmx:after:swap", (event) => {
    const form = dialog()?.querySelector("form");
    if (form && event.target instanceof Element && (event.target.id === "find-found" || event.target === form)) answered.dialog = form.dataset.asked ?? "";
  });
  document.addEventListener("input", (event) => { if (event.target === field()) showRecent(); });

  // Enter opens the first result if the results are of this text. Otherwise the browser goes to the page of the search.
  document.addEventListener("submit", (event) => {
    const form = event.target;
    if (form instanceof HTMLFormElement && form.getAttribute("action") === "/logout") {
      for (const name of Object.keys(localStorage)) if (name.startsWith(prefix)) localStorage.removeItem(name);
    }
    if (!(form instanceof HTMLFormElement) || !form.closest("#find")) return;
    const text = field().value;
    if (!text.trim()) { event.preventDefault(); return; }
    keep(text);
    const first = document.querySelector("#find-found a.find");
    if (!first || answered[place(form)] !== text) return;
    event.preventDefault();
    first.click();
  });

  // Arrows move the focus from the field through the results, and back.
  document.addEventListener("keydown", (event) => {
    const at = event.target instanceof Element ? event.target : null;
    if (!at || !["ArrowDown", "ArrowUp"].includes(event.key) || event.ctrlKey || event.metaKey || event.altKey) return;
    const root = at.closest("#find") ?? (at.closest("[data-finds], main [role=search]") && document.querySelector("main [data-finds]"));
    if (!root) return;
    const rows = [...root.querySelectorAll(".find")].filter((row) => row.checkVisibility());
    const from = rows.indexOf(at.closest(".find"));
    if (from < 0 && at !== fieldOf(at)) return;
    const to = from + (event.key === "ArrowDown" ? 1 : -1);
    event.preventDefault();
    if (to < 0) fieldOf(at)?.focus();
    else rows[Math.min(to, rows.length - 1)]?.focus();
  });

  // The people found for a form's number field. A click or Enter on one writes its number into the field.
  const picksOf = (at) => at instanceof Element ? document.getElementById(at.dataset.picks ?? "") ?? at.closest(".picks")?.querySelector(".picks-list")?.parentElement : null;
  const pick = (button) => {
    const box = button.closest(".picks"), into = box.querySelector("[data-picks]");
    into.value = button.dataset.pick;
    document.getElementById(into.dataset.picks).replaceChildren();
    into.dispatchEvent(new Event("change", { bubbles: true }));
    into.focus();
  };
  document.addEventListener("click", (event) => {
    const button = event.target instanceof Element ? event.target.closest("[data-pick]") : null;
    if (button) pick(button);
  });
  document.addEventListener("keydown", (event) => {
    const box = picksOf(event.target), all = [...(box?.querySelectorAll("[data-pick]") ?? [])];
    if (all.length === 0) return;
    const into = box.closest(".picks").querySelector("[data-picks]"), from = all.indexOf(event.target);
    if (event.key === "Escape") box.replaceChildren();
    else if (event.key === "Enter" && from < 0 && /\p{L}/u.test(into.value)) pick(all[0]);
    else if (event.key === "ArrowDown") all[Math.min(from + 1, all.length - 1)].focus();
    else if (event.key === "ArrowUp") (all[from - 1] ?? into).focus();
    else return;
    if (event.key === "Escape") into.focus();
    event.preventDefault();
  });
})();
