// If a person drags a message to another day or hour, this script fills and sends a form. The page of the message has
// the same form.
(() => {
  const root = document.querySelector("[data-calendar=true]");
  const form = root?.querySelector("form[data-move]");
  if (!form) return;
  let dragged = null;

  const zoneOf = (event) => (event.target instanceof Element ? event.target.closest("[data-drop], [data-past]") : null);
  const unmark = () => root.querySelectorAll(".drop-here").forEach((e) => e.classList.remove("drop-here"));

  root.addEventListener("dragstart", (event) => {
    dragged = event.target instanceof Element ? event.target.closest("[data-message]") : null;
    if (!dragged) return;
    event.dataTransfer.effectAllowed = "move";
    event.dataTransfer.setData("text/plain", dragged.dataset.message);
    dragged.classList.add("dragged");
  });
  root.addEventListener("dragend", () => {
    dragged?.classList.remove("dragged");
    dragged = null;
    unmark();
  });
  root.addEventListener("dragover", (event) => {
    const zone = zoneOf(event);
    if (!dragged || !zone) return;
    event.preventDefault();
    unmark();
    if ("drop" in zone.dataset) zone.classList.add("drop-here");
  });
  root.addEventListener("drop", (event) => {
    const zone = zoneOf(event);
    if (!dragged || !zone) return;
    event.preventDefault();
    if (zone === dragged.closest("[data-drop], [data-past]")) return;
    if (!("drop" in zone.dataset)) { // the drop is accepted only so that the page can say why it is refused
      globalThis.puntuale.say(root.dataset.over, "bad");
      return;
    }
    const [hour, minute] = dragged.dataset.time.split(":");
    form.action = `${dragged.dataset.message}/move`;
    form.elements.date.value = zone.dataset.drop;
    form.elements.time.value = `${zone.dataset.hour ?? hour}:${minute}`;
    form.requestSubmit();
  });
})();
