// Starting by hand. A person may start only what the preview shows, so the button is off while the fields differ from
// the preview. The server checks this again.
(() => {
  const fields = () => JSON.stringify([...document.querySelectorAll("#start-form .start-fields input")].map((field) => field.value));
  const asked = new WeakMap(); // for each request: the values of the fields when it was sent
  let shown = fields(); // the values of the fields for which the preview on the screen was made

  // When a field loses the focus, the browser fires "change" between the press and the release of a click. This event alone
  // does not mean an edit, so this script compares the values.
  const compare = () => {
    const stale = fields() !== shown;
    const part = document.getElementById("start-preview");
    part?.classList.toggle("start-stale", stale);
    const button = part?.querySelector('button[value="start"]');
    if (button) button.disabled = stale;
  };
  const fieldOf = (event) => event.target instanceof HTMLInputElement && event.target.closest("#start-form .start-fields") ? event.target : null;
  const changed = (event) => { if (fieldOf(event)) compare(); };
  document.addEventListener("input", changed);
  document.addEventListener("change", changed);

  // A fault that the preview names is also shown at its field, after the person left the field. It is not shown while
  // the person types in the field, or while the field is empty.
  const left = new Set();
  const unmark = (field) => {
    const fault = `${field.id}-fault`;
    field.classList.remove("is-invalid");
    field.removeAttribute("aria-invalid");
    const rest = (field.getAttribute("aria-describedby") ?? "").split(" ").filter((id) => id && id !== fault).join(" ");
    if (rest) field.setAttribute("aria-describedby", rest);
    else field.removeAttribute("aria-describedby");
    document.getElementById(fault)?.remove();
  };
  const mark = (field, says) => {
    unmark(field);
    const line = document.getElementById("start-fault").content.firstElementChild.cloneNode(true);
    line.id = `${field.id}-fault`;
    line.querySelector("span").textContent = says;
    field.closest(".field").append(line);
    field.classList.add("is-invalid");
    field.setAttribute("aria-invalid", "true");
    field.setAttribute("aria-describedby", `${field.getAttribute("aria-describedby") ?? ""} ${line.id}`.trim());
  };
  const tell = () => {
    for (const id of left) {
      const field = document.getElementById(id);
      const says = document.querySelector(`#start-preview [data-fault-of="${CSS.escape(id)}"] > span`)?.textContent;
      if (field?.value && says) mark(field, says);
      else if (field) unmark(field);
    }
  };
  document.addEventListener("input", (event) => {
    const field = fieldOf(event);
    if (!field) return;
    for (const led of field.form.querySelectorAll("[data-focus]")) led.removeAttribute("data-focus"); // so that the focus does not move while the person types
    left.delete(field.id);
    unmark(field);
  });
  document.addEventListener("change", (event) => {
    const field = fieldOf(event);
    if (field) left.add(field.id); // the server's answer to this change comes later, and then shows the fault
  });

  document.addEventListener("htmx:before:request", (event) => asked.set(event.detail.ctx, fields()));
  document.addEventListener("htmx:after:swap", (event) => {
    shown = asked.get(event.detail.ctx) ?? shown;
    compare();
    // Only the preview lists faults by field. If the server returned the whole form, the form already marks its fields.
    if (event.target.id === "start-preview" && shown === fields()) tell();
  });
})();
