/** A button with a module of its own, which the browser requests at the first click. */
export const Cold = () => (
  <button type="button" id="cold" onclick={() => { document.querySelector("#noted")!.textContent = "cold"; }}>Cold</button>
);
