/** A button with a module of its own, which the browser requests at the first click. */
export const Colder = () => (
  <button type="button" id="colder" onclick={() => { document.querySelector("#noted")!.textContent = "colder"; }}>Colder</button>
);
