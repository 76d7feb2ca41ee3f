// What every page does in the browser: dialogs, copying, toasts, and the focus after a refused form. All listeners are
// on the document, so they also serve parts that htmx adds later.
(() => {
  // A toast with a button stays until somebody dismisses it.
  const say = (text, tone = "ok", button, act) => {
    if ([...document.querySelectorAll("#toasts [data-toast] > span")].some((shown) => shown.textContent === text)) return;
    const made = document.getElementById("toast")?.content.cloneNode(true);
    const box = made?.querySelector("[data-toast]");
    if (!box) return;
    box.className = `toast-box toast-${tone}`;
    box.querySelector("span").textContent = text;
    if (button) {
      button.addEventListener("click", () => { box.remove(); act(); });
      box.querySelector("span").after(button);
      box.dataset.stays = "";
    }
    document.getElementById("toasts")?.append(made);
    seen(box);
  };

  const seen = (box) => {
    box.dataset.seen = "";
    later(box);
    aside();
  };

  // Toasts are at the bottom, above a phone's bar. Toasts that would cover the submit button or the field with the focus
  // are at the top.
  const aside = () => {
    const all = document.getElementById("toasts");
    if (!all) return;
    all.classList.remove("toasts-above");
    const spared = [...document.querySelectorAll("main .btn-primary, main [type=submit]")];
    if (document.activeElement?.closest("main form")) spared.push(document.activeElement);
    const covers = () => {
      const box = all.getBoundingClientRect();
      return spared.some((e) => {
        const r = e.getBoundingClientRect();
        return r.height > 0 && r.left < box.right && box.left < r.right && r.top < box.bottom && box.top < r.bottom;
      });
    };
    if (!covers()) return;
    all.classList.add("toasts-above");
    if (covers()) all.classList.remove("toasts-above");
  };

  // A toast disappears after 6 seconds, or after 12 if it has an undo button. While it is under the pointer or has the
  // focus, it stays.
  const later = (box) => {
    if ("stays" in box.dataset) return;
    const life = box.querySelector("form") ? 12000 : 6000;
    let timer = setTimeout(() => box.remove(), life);
    for (const [event, stays] of [["pointerenter", true], ["focusin", true], ["pointerleave", false], ["focusout", false]]) {
      box.addEventListener(event, () => {
        clearTimeout(timer);
        if (!stays) timer = setTimeout(() => box.remove(), life);
      });
    }
  };

  const focusFault = (root) => {
    const field = root.querySelector?.("[data-focus]");
    if (!field) return;
    field.removeAttribute("data-focus"); // only once: a later change of another part must not take the focus from the person
    field.focus({ preventScroll: true });
    field.scrollIntoView({ block: "center" });
  };

  const open = (id) => {
    const dialog = document.getElementById(id);
    if (!(dialog instanceof HTMLDialogElement)) return;
    dialog.showModal();
    dialog.querySelector("[data-focus], [autofocus], input:not([type=hidden]), textarea, select")?.focus();
  };

  document.addEventListener("click", async (event) => {
    const at = event.target instanceof Element ? event.target : null;
    if (!at) return;
    const button = at.closest("[data-open], [data-close], [data-copy], [data-dismiss], [data-more], [data-print], [data-choose-none], [data-theme-toggle]");
    if (!button) {
      if (at instanceof HTMLDialogElement) at.close(); // the click was on the dialog's backdrop
      else openRow(at, event);
      return;
    }
    if (button.dataset.open) open(button.dataset.open);
    else if ("close" in button.dataset) button.closest("dialog")?.close();
    else if ("dismiss" in button.dataset) button.closest("[data-toast]")?.remove();
    else if ("more" in button.dataset) another(button);
    else if ("print" in button.dataset) print();
    else if ("chooseNone" in button.dataset) {
      keepChosen(button.form.dataset.choose, []);
      showChosen();
    }
    else if ("themeToggle" in button.dataset) globalThis.puntualeTheme.toggle();
    else if ("copy" in button.dataset) await copy(button);
  });

  // Adds another field like the last field.
  const another = (button) => {
    const last = button.previousElementSibling;
    if (!(last instanceof HTMLInputElement)) return;
    const next = last.cloneNode();
    next.value = "";
    next.setAttribute("aria-label", (last.getAttribute("aria-label") ?? "").replace(/\d+$/, (n) => String(Number(n) + 1)));
    last.after(next);
    next.focus();
  };

  // A click on a row opens the row's first link, unless the click was on another control, or the person selects text.
  const openRow = (at, event) => {
    const row = at.closest("tr[data-row]");
    if (!row || at.closest("a, button, input, select, label, summary") || String(getSelection())) return;
    const { ctrlKey, metaKey, shiftKey } = event;
    row.querySelector("a")?.dispatchEvent(new MouseEvent("click", { bubbles: true, cancelable: true, view: window, ctrlKey, metaKey, shiftKey }));
  };

  // The rows of a list that a person chose with their boxes, on this page and on others. They are kept in this tab until an
  // action on them begins.
  const rows = (form) => [...document.querySelectorAll("input[type=checkbox][form=choose]")].filter((box) => box.form === form);
  const place = (list) => "puntuale:chosen:" + (document.body.dataset.user ?? "") + ":" + list;
  const readChosen = (form) => {
    try {
      return new Set(JSON.parse(sessionStorage.getItem(place(form.dataset.choose))) ?? []);
    } catch { return new Set(rows(form).filter((box) => box.checked).map((box) => box.value)); }
  };
  const keepChosen = (list, all) => {
    try { sessionStorage.setItem(place(list), JSON.stringify([...all])); } catch { /* then only the boxes of this page count */ }
  };
  const showChosen = () => {
    const form = document.querySelector("form[data-choose]"), page = document.querySelector("[data-choose-page]");
    if (!form) return;
    const all = readChosen(form), boxes = rows(form);
    for (const box of boxes) box.checked = all.has(box.value);
    for (const hidden of form.querySelectorAll("[data-elsewhere]")) hidden.remove();
    for (const id of all) {
      if (boxes.some((box) => box.value === id)) continue;
      form.append(Object.assign(document.createElement("input"), { type: "hidden", name: "id", value: id }));
      form.lastElementChild.dataset.elsewhere = "";
    }
    form.querySelector("output").textContent = all.size;
    form.querySelector("[data-chosen-count]").hidden = form.querySelector("[data-choose-none]").hidden = false;
    form.hidden = all.size === 0;
    if (!page) return;
    page.closest("label").hidden = false;
    page.checked = boxes.length > 0 && boxes.every((box) => box.checked);
    page.indeterminate = !page.checked && boxes.some((box) => box.checked);
  };
  const choose = (form, boxes, on) => {
    const all = readChosen(form);
    let full = false;
    for (const box of boxes) {
      if (!on) all.delete(box.value);
      else if (all.size < Number(form.dataset.most)) all.add(box.value);
      else full ||= !all.has(box.value);
      box.checked = all.has(box.value);
    }
    keepChosen(form.dataset.choose, all);
    showChosen();
    if (full) say(form.dataset.full, "bad");
  };
  document.addEventListener("change", ({ target }) => {
    const form = target.form?.dataset.choose ? target.form : "choosePage" in target.dataset ? document.querySelector("form[data-choose]") : null;
    if (form) choose(form, target.form === form ? [target] : rows(form), target.checked);
  });
  document.addEventListener("submit", ({ target }) => {
    if (target.dataset?.chosen) keepChosen(target.dataset.chosen, []);
  });
  document.addEventListener("htmx:after:swap", () => {
    const refused = document.querySelector("form[data-chosen]"); // what was chosen stays chosen
    if (refused) keepChosen(refused.dataset.chosen, [...refused.querySelectorAll("input[name=id]")].map((hidden) => hidden.value));
    showChosen();
  });
  addEventListener("pageshow", showChosen);

  const copy = async (button) => {
    const words = button.querySelector("[data-copied]");
    try {
      await navigator.clipboard.writeText(button.dataset.copy);
    } catch {
      const text = button.parentElement?.querySelector("code");
      if (text) getSelection()?.selectAllChildren(text);
      return;
    }
    if (!words) return;
    const before = words.textContent;
    words.textContent = words.dataset.copied;
    setTimeout(() => { words.textContent = before; }, 2000);
  };

  // Pages show phone numbers in groups of digits, but copied text contains the numbers without spaces. Text that is copied
  // from an input field does not change.
  document.addEventListener("copy", (event) => {
    const text = String(getSelection());
    const plain = text.replace(/\+\d+(?:\u00a0\d+)+/g, (number) => number.replaceAll("\u00a0", ""));
    if (plain === text || event.target instanceof HTMLInputElement || event.target instanceof HTMLTextAreaElement) return;
    event.clipboardData.setData("text/plain", plain);
    event.preventDefault();
  });

  document.addEventListener("change", (event) => {
    const field = event.target;
    if (!(field instanceof HTMLElement)) return;
    if ("submit" in field.dataset) field.closest("form")?.requestSubmit();
    if (field.dataset.unchecks) {
      const box = field.closest("form")?.elements[field.dataset.unchecks];
      if (box) box.checked = false;
    }
  });

  // If a browser cannot read a date or a number, it sends an empty value. The server would read an empty value as "never"
  // or "unlimited".
  document.addEventListener("submit", (event) => {
    const odd = [...event.target.elements ?? []].find((field) => field.validity?.badInput);
    if (!odd) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    odd.reportValidity();
  }, true);

  // Parts that reload themselves contain two numbers: of people whose replies nobody has read, and of unread notices. The
  // menu and the bell show these numbers.
  const countUnread = () => {
    const told = document.querySelector("[data-unread-now]")?.dataset;
    if (!told) return;
    for (const [places, number] of [["[data-unread]", told.unreadNow], ["[data-notices]", told.noticesNow]]) {
      for (const place of document.querySelectorAll(places)) {
        place.hidden = number === "0";
        place.firstElementChild.textContent = number;
      }
    }
  };

  // htmx: sets the focus after a refused form.
  document.addEventListener("htmx:after:swap", (event) => {
    focusFault(document.querySelector("dialog[open]") || document);
    if (event.target instanceof Element && event.target.id === "main") { // another page has replaced the present one
      scrollTo(0, 0);
      event.target.focus({ preventScroll: true });
    }
    for (const box of document.querySelectorAll("[data-toast]:not([data-seen])")) seen(box);
    countUnread();
  });
  document.addEventListener("toast", (event) => say(event.detail?.text ?? event.detail?.value ?? "", event.detail?.tone));

  // The server knows from which page of a list the reader came, but only for the first page that the list leads to. So the
  // tab keeps the address for the next pages, for example after an action. If the last page was the list, the link goes back
  // in the history of the browser, which also scrolls.
  const keepBack = () => {
    const link = document.querySelector("a.back");
    if (!link || !document.referrer) return;
    const from = new URL(document.referrer), key = `back:${link.pathname}`;
    if (from.origin !== location.origin) return;
    if (from.pathname === link.pathname) sessionStorage.setItem(key, link.href);
    else if (from.pathname === location.pathname || from.pathname.startsWith(`${link.pathname}/`)) link.href = sessionStorage.getItem(key) ?? link.href;
    link.addEventListener("click", (event) => {
      if (history.length < 2 || event.ctrlKey || event.metaKey || event.shiftKey || link.href.split("#")[0] !== document.referrer) return;
      event.preventDefault();
      history.back();
    });
  };

  const begin = () => {
    keepBack();
    focusFault(document);
    for (const box of document.querySelectorAll("[data-toast]")) seen(box);
    if (location.hash) open(location.hash.slice(1));
    document.querySelector("form[data-submit-now]")?.requestSubmit();
  };
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", begin);
  else begin();

  globalThis.puntuale = { say, open, another };

  // Uploads a file as soon as it is chosen, dropped or pasted, and writes its address and name into the form.
  const upload = async (box, file) => {
    const says = box.querySelector("[role=status]"), pick = box.querySelector("input[type=file]");
    const kind = box.dataset.mostDocument && /\.(pdf|docx|xlsx|pptx)$/i.test(file.name) ? "Document" : "";
    if (file.size > Number(box.dataset["most" + kind])) { // the server would stop reading, and the browser would not see why
      says.textContent = box.dataset["large" + kind];
      says.classList.add("fault");
      return;
    }
    const body = new FormData();
    body.set("file", file);
    says.textContent = box.dataset.busy;
    pick.disabled = true;
    let told;
    try {
      const answer = await fetch(box.dataset.upload, { method: "POST", body });
      told = await answer.json();
    } catch { told = { says: box.dataset.failed }; } // no answer, or a page such as the sign-in
    pick.disabled = false;
    pick.value = "";
    says.textContent = told.says ?? box.dataset.failed;
    says.classList.toggle("fault", !told.media);
    if (!told.media) return;
    if (box.dataset.again) location.reload();
    else attach(box, told.media, told.name, file.type.startsWith("image/"));
  };
  const attach = (box, address, called, picture) => {
    const media = document.getElementById(box.dataset.media), name = document.getElementById(box.dataset.name);
    const look = box.querySelector("img"), detach = box.querySelector("[data-detach]");
    if (!media) return;
    media.value = address;
    if (name) name.value = called;
    look.hidden = !picture;
    if (picture) look.src = `${box.dataset.upload}/${address.slice("file:".length)}`;
    if (detach) detach.hidden = !address;
    for (const event of ["input", "change"]) media.dispatchEvent(new Event(event, { bubbles: true }));
  };
  document.addEventListener("click", (event) => {
    const box = event.target instanceof Element && event.target.closest("[data-detach]")?.closest("[data-upload]");
    if (!box) return;
    attach(box, "", "", false);
    box.querySelector("[role=status]").textContent = "";
  });
  document.addEventListener("paste", (event) => {
    const box = event.target instanceof Element && event.target.closest("form")?.querySelector("[data-paste]");
    const data = event.clipboardData;
    if (!box || !data?.files.length || data.types.includes("text/plain")) return; // a text with a picture stays a text
    event.preventDefault();
    upload(box, data.files[0]);
  });
  document.addEventListener("change", (event) => {
    const box = event.target instanceof HTMLInputElement && event.target.type === "file" && event.target.closest("[data-upload]");
    if (!box || !event.target.files.length) return;
    event.stopPropagation();
    upload(box, event.target.files[0]);
  }, true);
  for (const name of ["dragover", "drop"]) document.addEventListener(name, (event) => {
    const box = event.target instanceof Element && event.target.closest("[data-upload]");
    if (!box || !event.dataTransfer?.types.includes("Files")) return;
    event.preventDefault();
    if (name === "drop" && event.dataTransfer.files.length) upload(box, event.dataTransfer.files[0]);
  });
})();
