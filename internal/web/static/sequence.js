// The parts of the sequence editor that the server cannot do. All listeners are on the document, so they also work after
// htmx has replaced the form.
(() => {
  // After a person has dragged a step, this script presses a hidden button, and the server moves the step.
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

  // A step before its anchor, or exactly at its anchor, needs a date as the anchor. The start cannot be the anchor, because
  // no message can leave before the start. In a sequence for bookings, moments of a booking are offered, too.
  const dated = (timing) => ["before", "at"].includes(timing.querySelector(".timing-direction").value);
  const moment = (value) => value.startsWith("booking.");
  const offer = (part, yes) => { part.hidden = part.disabled = !yes; };
  const offerAnchors = () => {
    const bookings = Boolean(document.querySelector("#sequence-form [name=for_bookings]")?.checked);
    for (const timing of document.querySelectorAll(".timing")) {
      const direction = timing.querySelector(".timing-direction"), anchor = timing.querySelector(".timing-anchor");
      const start = anchor.querySelector('[value="start"]');
      offer(start, !dated(timing) || start.selected);
      for (const group of timing.querySelectorAll("optgroup"))
        offer(group, (bookings && (group.parentElement === direction || direction.value === "after")) || moment(group.parentElement.value));
      const change = moment(direction.value) ? direction.value : direction.value !== "now" && moment(anchor.value) ? anchor.value : "";
      const words = timing.querySelector(".only-if-unset");
      if (!words) continue;
      const key = change ? (change === "booking.moved" ? "open" : change.slice("booking.".length))
        : ["after", "at"].includes(direction.value) && anchor.value !== "start" ? "after" : "open";
      words.textContent = JSON.parse(words.dataset.words)[key];
    }
  };
  document.addEventListener("input", (event) => {
    if (!(event.target instanceof Element) || !event.target.matches("[name=for_bookings], .timing-direction, .timing-anchor")) return;
    const timing = event.target.closest(".timing"), anchor = timing?.querySelector(".timing-anchor");
    if (anchor && event.target !== anchor && dated(timing) && (anchor.value === "start" || moment(anchor.value))) anchor.value = [...anchor.options].find((o) => o.value !== "start").value;
    offerAnchors();
  });
  document.addEventListener("htmx:after:swap", offerAnchors);

  // A click on a chip inserts its field at the cursor, in that text of the step in which the person wrote last.
  let wrote = "";
  document.addEventListener("focusin", (event) => {
    if (event.target instanceof HTMLTextAreaElement && /(^|\.)text(_[a-d])?$/.test(event.target.name)) wrote = event.target.id;
  });
  document.addEventListener("click", (event) => {
    const chip = event.target instanceof Element && event.target.closest("[data-insert]");
    if (!chip) return;
    let area = document.getElementById(chip.dataset.into);
    if (!(area instanceof HTMLTextAreaElement)) return;
    const last = document.getElementById(wrote);
    if (last?.checkVisibility() && area.closest(".step") === last.closest(".step")) area = last;
    const name = chip.dataset.insert;
    const untouched = area.selectionEnd === 0; // the person has not set a cursor in this field, so the text goes to the end
    const start = untouched ? area.value.length : area.selectionStart, end = untouched ? area.value.length : area.selectionEnd;
    area.setRangeText(`{{${name}}}`, start, end, "end");
    area.focus();
    if (!name) area.setSelectionRange(start + 2, start + 2); // the person types the name of the field next
    area.dispatchEvent(new Event("input", { bubbles: true }));
  });

  // While a person types, the focus must not move. A screen reader must not read a fault that the person may have corrected.
  document.addEventListener("input", (event) => {
    const form = event.target instanceof Element && event.target.closest("#sequence-form, #template-form, #automation-form");
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

  // Shows how long a text is, or by how much it is too long.
  const count = () => {
    for (const line of document.querySelectorAll("[data-count]")) {
      const area = document.getElementById(line.dataset.count);
      if (!area) continue;
      const caption = line.closest(".step")?.querySelector(".kind [value=media]")?.checked;
      const most = Number(caption ? line.dataset.caption : line.dataset.most), n = [...area.value].length;
      line.textContent = n === 0 ? "" : `${n} / ${most}` + (n > most ? ` · ${line.dataset.over.replace("#", n - most)}` : "");
      line.classList.toggle("counter-over", n > most);
    }
  };
  document.addEventListener("input", count);
  document.addEventListener("change", count);
  document.addEventListener("htmx:after:swap", count);

  // This tab stores unsaved text, because a sign-in may end, and a person may leave the page by mistake. It does not store
  // the phone number and the fields of the example person, because the next user of this tab must not see them.
  const editor = () => document.querySelector("form.editor#sequence-form");
  const keep = "puntuale:draft:";
  const written = (form) => [...new FormData(form)].filter(([name, value]) =>
    typeof value === "string" && name !== "do" && name !== "phone" && !name.startsWith("fields.") && !name.startsWith("preview."));
  const key = (form) => keep + new URL(form.action).pathname;
  let begun = "", leaving = false;
  const dirty = () => {
    const form = editor();
    return Boolean(form) && begun !== "" && JSON.stringify(written(form)) !== begun;
  };
  const store = () => {
    const form = editor();
    if (!form || !dirty()) return;
    try { sessionStorage.setItem(key(form), JSON.stringify({ of: form.dataset.draftOf, at: Date.now(), values: written(form) })); } catch { /* the browser's storage may be full or forbidden; then nothing is kept */ }
  };
  const kept = (form) => {
    // A draft belongs to the user who wrote it, and expires.
    let draft = null;
    try { draft = JSON.parse(sessionStorage.getItem(key(form))); } catch { /* as if there were no draft */ }
    if (draft && draft.of === form.dataset.draftOf && Date.now() - draft.at < Number(form.dataset.draftLasts)) return draft;
    sessionStorage.removeItem(key(form));
    return null;
  };
  const offerDraft = () => {
    const form = editor(), box = form?.querySelector(".draft-found"), draft = form && kept(form);
    if (!box || !draft || !Array.isArray(draft.values)) return;
    const at = box.querySelector("[data-draft-at]");
    at.textContent = new Date(draft.at).toLocaleString(document.documentElement.lang, { timeZone: at.dataset.zone });
    box.hidden = false;
  };
  const take = async (form) => {
    const draft = kept(form);
    if (!draft) return;
    const values = new URLSearchParams(draft.values);
    values.set("id", form.elements.id.value);
    const answer = await fetch(document.getElementById("step-moved").formAction, { method: "POST", headers: { "HX-Request": "true" }, body: values });
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html").getElementById("sequence-form");
    if (!answer.ok || !fresh) return;
    const here = document.importNode(fresh, true);
    form.replaceWith(here);
    htmx.process(here);
    count();
    offerAnchors();
    here.querySelector("[name=name]").focus();
  };
  document.addEventListener("click", (event) => {
    const button = event.target instanceof Element && event.target.closest("[data-draft]");
    if (!button) return;
    const form = editor();
    if (button.dataset.draft === "take") take(form);
    else {
      sessionStorage.removeItem(key(form));
      button.closest(".draft-found").hidden = true;
    }
  });
  for (const name of ["input", "change", "htmx:after:swap"]) document.addEventListener(name, (event) => {
    if (name === "htmx:after:swap") leaving = false; // the form came back, so the page is not being left
    else if (!(event.target instanceof Element) || !event.target.closest("form.editor")) return;
    store();
  });
  document.addEventListener("submit", (event) => {
    if (event.target === editor() && !event.submitter?.hasAttribute("formaction")) leaving = true;
  }, true);
  // What is written stays in this tab's storage, so these buttons may leave the page.
  document.addEventListener("click", (event) => {
    if (event.target instanceof Element && event.target.closest("[data-leaves]")) leaving = true;
  }, true);
  addEventListener("beforeunload", (event) => { if (!leaving && dirty()) event.preventDefault(); });
  // The class "typing" marks a form in which a person types. It does not change while a person presses a button of the form,
  // because the buttons would move away under the finger.
  const typed = (element) => element?.matches("textarea, input:not([type=radio], [type=checkbox])");
  document.addEventListener("focusin", (event) => {
    const form = event.target.closest("form.editor");
    if (!form || event.target.closest(".editor-save")) return;
    form.classList.toggle("typing", typed(event.target));
  });
  document.addEventListener("focusout", () => setTimeout(() => {
    const form = editor(), now = document.activeElement;
    if (form && !now?.closest(".editor-save") && !(form.contains(now) && typed(now))) form.classList.remove("typing");
  }, 300));

  const begin = () => {
    count();
    offerAnchors();
    const form = editor();
    if (form) {
      form.classList.toggle("typing", form.contains(document.activeElement) && typed(document.activeElement));
      begun = JSON.stringify(written(form));
      offerDraft();
    } else if (document.querySelector("[data-toast]")) { // the form was saved
      const here = keep + location.pathname.replace(/\/sequences.*/, "/sequences");
      for (const name of [here, keep + location.pathname]) sessionStorage.removeItem(name);
    }
  };
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", begin);
  else begin();

  // After a step was added, the page scrolls so that the bar at the top does not hide the step's heading.
  document.addEventListener("htmx:after:swap", () => {
    const step = document.querySelector(".step textarea[data-focus]:not([aria-invalid])")?.closest(".step");
    const bar = document.querySelector(".top")?.getBoundingClientRect().bottom ?? 0;
    if (step && step.getBoundingClientRect().top < bar) step.scrollIntoView({ block: "start" });
  });

  // Dates that the texts name are options for the anchor, above the proposed dates.
  document.addEventListener("htmx:after:swap", () => {
    const dates = JSON.parse(document.getElementById("timeline")?.dataset.dates ?? "[]");
    for (const anchor of document.querySelectorAll(".timing-anchor, .editor [name=booking]")) {
      const known = [...anchor.options].map((o) => o.value);
      anchor.options[0].after(...dates.filter((name) => !known.includes(name)).map((name) => new Option(name, name)));
    }
  });

  // Fields that the texts name are also offered as chips.
  document.addEventListener("htmx:after:swap", () => {
    const { fields = "[]", dates = "[]" } = document.getElementById("timeline")?.dataset ?? {};
    for (const group of document.querySelectorAll(".fields")) {
      const forms = (group.dataset.forms ?? "").split(" ").filter(Boolean);
      const names = [...JSON.parse(fields), ...JSON.parse(dates).flatMap((date) => forms.map((form) => `${date}:${form}`))];
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
