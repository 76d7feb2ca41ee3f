// What happens to a form whose request does not arrive, or arrives after the sign-in has ended. All listeners are on the
// document, so they also serve forms that htmx adds later.
(() => {
  const posts = (form) => form instanceof HTMLFormElement && form.getAttribute("method")?.toLowerCase() === "post";
  const program = document.currentScript.src; // the server sends this file without a sign-in

  // A form without an answer says so beside its button, and can be sent again. known is true if the request certainly did
  // not leave this browser. A form with a key is executed once, however often it is sent.
  const lost = (form, submitter, known) => {
    const box = document.getElementById("lost")?.content.firstElementChild.cloneNode(true);
    if (!box) return;
    const words = known ? box.dataset.known : form.elements.namedItem("key") ? box.dataset.once : box.dataset.unknown;
    const again = () => {
      if (submitter?.isConnected && submitter.hasAttribute("hx-post")) { // such a button asks another address than its form
        found(form);
        submitter.click();
      } else if (form.isConnected) form.requestSubmit(submitter?.isConnected ? submitter : undefined);
    };
    found(form);
    delete form.dataset.sent;
    if (!form.checkVisibility() || !form.closest("dialog") && !form.matches(".form")) { // a form of one button has no room
      globalThis.puntuale.say(words, "bad", box.querySelector("button"), again);
      return;
    }
    box.querySelector("span").textContent = words;
    box.querySelector("button").addEventListener("click", again);
    const row = submitter?.closest(".actions, .editor-save");
    if (row && form.contains(row)) row.before(box);
    else form.append(box);
    box.scrollIntoView({ block: "center" });
    box.querySelector("button").focus({ preventScroll: true });
  };
  // htmx would send a second click after the first. A form also stays closed while the browser goes to the next page.
  document.addEventListener("submit", (event) => {
    const form = event.target;
    if (!posts(form) || !form.hasAttribute("hx-post")) return;
    if (form.dataset.sent) {
      event.preventDefault();
      event.stopImmediatePropagation();
      return;
    }
    form.dataset.sent = "1";
    setTimeout(() => { if (form.dataset.sent === "1") delete form.dataset.sent; }, 4000); // htmx may not have begun
  }, true);
  document.addEventListener("htmx:before:request", (event) => {
    if (posts(event.target) && event.target.dataset.sent) event.target.dataset.sent = "asked";
  });
  document.addEventListener("htmx:finally:request", (event) => {
    if (posts(event.target) && !event.detail.ctx.hx?.redirect) delete event.target.dataset.sent;
  });

  const found = (form) => { for (const box of form.querySelectorAll("[data-lost]")) box.remove(); };

  document.addEventListener("submit", (event) => {
    const form = event.target;
    if (!posts(form)) return;
    found(form);
    if (navigator.onLine) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    lost(form, event.submitter, true);
  }, true);

  // A form that the browser sends cannot be sent again while it is being sent. If the server were out of reach, the
  // browser would replace the page. So the page first asks the server for a small file.
  document.addEventListener("submit", async (event) => {
    const form = event.target, { submitter } = event;
    if (!posts(form) || form.hasAttribute("hx-post") || event.defaultPrevented) return;
    if (form.dataset.reached) {
      delete form.dataset.reached;
      return;
    }
    event.preventDefault();
    if (form.dataset.sent) return;
    form.dataset.sent = "1";
    try {
      await fetch(program, { method: "HEAD", cache: "no-store", signal: AbortSignal.timeout(10000) });
    } catch {
      delete form.dataset.sent;
      lost(form, submitter, true);
      return;
    }
    setTimeout(() => delete form.dataset.sent, 4000);
    form.dataset.reached = "1";
    if (form.isConnected) form.requestSubmit(submitter?.isConnected ? submitter : undefined);
    delete form.dataset.reached;
  });
  addEventListener("pageshow", () => { for (const form of document.forms) delete form.dataset.sent; });

  // Parts that a page loads by itself say nothing, because they load again.
  document.addEventListener("htmx:error", (event) => {
    const request = event.detail?.ctx, at = event.target;
    if (!request?.request || request.response || !(at instanceof Element)) return;
    const form = at.closest("form");
    if (posts(form) && (at === form || at.matches("[type=submit]"))) lost(form, at === form ? request.sourceEvent?.submitter : at, !navigator.onLine);
    else if (request.sourceEvent?.isTrusted) globalThis.puntuale.say(document.getElementById("lost").content.firstElementChild.dataset.away, "bad");
  });

  // If the sign-in has ended, the server answers with the sign-in page. After the sign-in, the forms in which the person
  // typed are filled again. Their values are in this tab's storage only while the person signs in, and only for the same
  // user. Passwords, keys and codes are never stored.
  const store = "puntuale:unsent", lasts = 60 * 60 * 1000;
  const typed = new Set();
  const user = () => document.body.dataset.user ?? "";
  const action = (form) => form.getAttribute("action");
  const here = () => location.pathname + location.search;
  const secret = (field) => field.type === "password" || field.type === "file" || field.dataset.secret !== undefined ||
    /password|one-time-code/.test(field.autocomplete);
  const kept = (form) => posts(form) && !("draftOf" in form.dataset) && !form.closest("#toasts");

  const values = (form) => [...form.elements].flatMap((field) => {
    if (!field.name || secret(field) || field.matches("button, fieldset, output, [type=submit]")) return [];
    if (field.matches("[type=checkbox], [type=radio]")) return field.checked ? [[field.name, field.value]] : [];
    if (field.multiple && field.options) return [...field.selectedOptions].map((o) => [field.name, o.value]);
    return [[field.name, field.value]];
  });
  for (const name of ["input", "change"]) document.addEventListener(name, (event) => {
    const form = event.target instanceof Element && event.target.form;
    if (form && kept(form)) typed.add(action(form));
  });
  document.addEventListener("submit", (event) => {
    if (event.target instanceof HTMLFormElement && ["/logout", "/leave"].includes(action(event.target))) typed.clear();
  });
  addEventListener("pagehide", () => {
    if (!user()) return;
    const forms = [...document.forms].filter((form) => kept(form) && (typed.has(action(form)) || form.querySelector("[data-focus], .is-invalid")));
    if (forms.length === 0) return;
    const all = forms.map((form) => ({ action: action(form), values: values(form), file: [...form.elements].some((f) => f.type === "file" && f.value) }));
    try { sessionStorage.setItem(store, JSON.stringify({ of: user(), at: Date.now(), page: here(), forms: all })); } catch { /* the storage may be full or forbidden; then nothing is kept */ }
  });

  const read = () => {
    try { return JSON.parse(sessionStorage.getItem(store)); } catch { return null; }
  };
  const same = (left) => left?.of === user() && left.page === here() && Date.now() - left.at < lasts;

  // A form whose number of fields changes is made by the server, from the kept values.
  const rebuilt = async (form, all) => {
    const answer = await fetch(form.dataset.refill, { method: "POST", headers: { "HX-Request": "true" }, body: new URLSearchParams(all) });
    const fresh = answer.ok && new DOMParser().parseFromString(await answer.text(), "text/html").getElementById(form.getAttribute("id")); // a field may have the name id
    if (!fresh) return form;
    const made = document.importNode(fresh, true);
    form.replaceWith(made);
    htmx.process(made);
    return made;
  };
  const fill = (form, all) => {
    const left = [...all];
    for (const field of form.elements) {
      if (!field.name || secret(field) || field.matches("button, fieldset, output")) continue;
      if (field.type === "hidden" && field.name !== "version") continue;
      if (field.matches("[type=checkbox], [type=radio]")) {
        field.checked = all.some(([name, value]) => name === field.name && value === field.value);
      } else if (field.multiple && field.options) {
        for (const option of field.options) option.selected = all.some(([name, value]) => name === field.name && value === option.value);
      } else {
        const at = left.findIndex(([name]) => name === field.name);
        if (at < 0) continue;
        field.value = left.splice(at, 1)[0][1];
      }
      const more = field.nextElementSibling;
      if (more?.matches("[data-more]") && left.some(([name, value]) => name === field.name && value)) globalThis.puntuale.another(more);
    }
    for (const field of form.elements) {
      if (field.name && !("submit" in field.dataset)) field.dispatchEvent(new Event("input", { bubbles: true }));
    }
  };
  const refill = async () => {
    const left = read();
    if (!left) return;
    if (!user()) { // the sign-in page: the next page may fill the forms
      sessionStorage.setItem(store, JSON.stringify({ ...left, signedOut: true }));
      return;
    }
    const forms = same(left) && left.signedOut ? left.forms.map((f) => [f, [...document.forms].find((form) => kept(form) && action(form) === f.action)]) : [];
    // A page that asks a person of the agency whether to enter has the same address and none of the forms.
    if (same(left) && left.signedOut && !forms.some(([, form]) => form)) return;
    sessionStorage.removeItem(store);
    for (let [f, form] of forms) {
      if (!form) continue;
      if (form.dataset.refill) form = await rebuilt(form, f.values);
      else fill(form, f.values);
      typed.add(f.action);
      const note = document.getElementById("unsent").content.firstElementChild.cloneNode(true);
      if (f.file) note.querySelector("span").textContent += " " + note.dataset.file;
      form.prepend(note);
      if (form.closest("dialog[id]")) globalThis.puntuale.open(form.closest("dialog[id]").id);
      for (const field of form.elements) {
        const fold = field.closest("details");
        if (fold && f.values.some(([name, value]) => name === field.name && value)) fold.open = true;
      }
      for (let at = form.closest("details"); at; at = at.parentElement.closest("details")) at.open = true;
      note.scrollIntoView({ block: "center" });
    }
  };
  addEventListener("load", () => setTimeout(refill)); // htmx begins in the same way, and earlier
})();
