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
  const changed = (event) => {
    if (!(event.target instanceof Element) || !event.target.closest("#start-form .start-fields")) return;
    edits++;
    hold();
  };
  document.addEventListener("input", changed);
  document.addEventListener("change", changed);
  document.addEventListener("htmx:before:request", () => { asked = edits; });
  document.addEventListener("htmx:after:swap", () => {
    if (asked !== edits) hold(); // somebody typed meanwhile: another answer is on its way
    else document.getElementById("start-preview")?.classList.remove("start-stale");
  });
})();
