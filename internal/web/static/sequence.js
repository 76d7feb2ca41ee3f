// The editor of sequences: what the server cannot do. Everything hangs on the document, so that a form that comes back
// needs nothing anew.
(() => {
  // A step that was dragged is moved by the server, like one moved by its buttons.
  document.addEventListener("alpine:init", () => {
    Alpine.data("sequence", () => ({
      moved(from, to) {
        const button = document.getElementById("step-moved");
        if (!button || Number(from) === Number(to)) return;
        button.value = `move:${from}:${to}`;
        button.click();
      },
    }));
  });

  // A chip puts its field where the cursor is.
  document.addEventListener("click", (event) => {
    const chip = event.target instanceof Element && event.target.closest("[data-insert]");
    if (!chip) return;
    const area = document.getElementById(chip.dataset.into);
    if (!(area instanceof HTMLTextAreaElement)) return;
    const name = chip.dataset.insert;
    const untouched = area.selectionEnd === 0; // nobody put a cursor there: the end is meant
    const start = untouched ? area.value.length : area.selectionStart, end = untouched ? area.value.length : area.selectionEnd;
    area.setRangeText(`{{${name}}}`, start, end, "end");
    area.focus();
    if (!name) area.setSelectionRange(start + 2, start + 2); // the name is to be typed
    area.dispatchEvent(new Event("input", { bubbles: true }));
  });

  // Whoever goes on typing does not want the focus moved, nor to read of a fault that may be gone.
  document.addEventListener("input", (event) => {
    const form = event.target instanceof Element && event.target.closest("#sequence-form, #template-form");
    if (!form) return;
    for (const field of form.querySelectorAll("[data-focus]")) field.removeAttribute("data-focus");
    const step = event.target.closest(".step-bad");
    if (step) {
      step.classList.remove("step-bad");
      step.querySelector(`:scope > .fault`)?.remove();
    }
    if (event.target.ariaInvalid !== "true") return;
    event.target.removeAttribute("aria-invalid");
    event.target.classList.remove("is-invalid");
    document.getElementById(`${event.target.id}-fault`)?.remove();
  });

  // Fields that were just named are offered as chips, too.
  document.addEventListener("htmx:after:swap", () => {
    const names = JSON.parse(document.getElementById("timeline")?.dataset.fields ?? "[]");
    for (const group of document.querySelectorAll(".fields")) {
      const last = group.querySelector(".chip-new");
      for (const name of names) {
        if (!last || group.querySelector(`[data-insert="${CSS.escape(name)}"]`)) continue;
        const chip = document.createElement("button");
        chip.type = "button";
        chip.className = "chip chip-button";
        chip.dataset.insert = name;
        chip.dataset.into = last.dataset.into;
        chip.textContent = name;
        last.before(chip);
      }
    }
  });
})();
