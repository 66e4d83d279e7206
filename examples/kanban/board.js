// Moves cards by drag and drop. The buttons of a card do the same without a script.
import { call } from "/_bine/live.js";

let dragged = null;

document.addEventListener("dragstart", event => {
  const card = event.target.closest?.('[data-card][draggable="true"]');
  if (!card) return;
  dragged = card.dataset.card;
  event.dataTransfer.effectAllowed = "move";
  event.dataTransfer.setData("text/plain", card.innerText);
});

document.addEventListener("dragend", () => { dragged = null; });

document.addEventListener("dragover", event => {
  if (dragged && event.target.closest?.("[data-lane]")) event.preventDefault();
});

document.addEventListener("drop", async event => {
  const lane = event.target.closest?.("[data-lane]");
  if (!dragged || !lane) return;
  event.preventDefault();
  const below = [...lane.querySelectorAll("[data-card]")].find(card => {
    const { top, height } = card.getBoundingClientRect();
    return card.dataset.card !== dragged && event.clientY < top + height / 2;
  });
  const status = document.getElementById("moved");
  try {
    await call("/api/cards/move", { card: dragged, lane: lane.dataset.lane, before: below?.dataset.card ?? null });
    status.textContent = "";
  } catch (error) {
    status.textContent = error.detail ?? "The card could not be moved.";
  }
});
