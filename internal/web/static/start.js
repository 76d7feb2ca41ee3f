// Starting by hand: what is not on the screen is not started. Each change takes the button away until the preview is there again;
// the server looks, too.
(() => {
  let edits = 0, asked = 0;
  const hold = () => {
    const part = document.getElementById("start-preview");
    part?.classList.add("start-stale");
    const button = part?.querySelector('button[value="start"]');
    if (button) button.disabled = true;
  };
  const fieldOf = (event) => event.target instanceof HTMLInputElement && event.target.closest("#start-form .start-fields") ? event.target : null;
  const changed = (event) => {
    if (!fieldOf(event)) return;
    edits++;
    hold();
  };
  document.addEventListener("input", changed);
  document.addEventListener("change", changed);

  // What the preview says of a field is said at the field, too, once somebody has left it: not while they type, and not of a
  // field that they have not filled in yet.
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
    for (const led of field.form.querySelectorAll("[data-focus]")) led.removeAttribute("data-focus"); // whoever goes on typing is not led back
    left.delete(field.id);
    unmark(field);
  });
  document.addEventListener("change", (event) => {
    const field = fieldOf(event);
    if (field) left.add(field.id); // the answer to this change is on its way
  });

  document.addEventListener("htmx:before:request", () => { asked = edits; });
  document.addEventListener("htmx:after:swap", () => {
    if (asked !== edits) hold(); // somebody typed meanwhile: another answer is on its way
    else {
      document.getElementById("start-preview")?.classList.remove("start-stale");
      tell();
    }
  });
})();
