// Shows the results of a search while the visitor writes. Without this module, Enter does it.
let timer: number | undefined;
let newest = 0;

async function show(field: HTMLInputElement, path: string): Promise<void> {
  const number = ++newest;
  const address = `${path}?q=${encodeURIComponent(field.value)}`;
  const reply = await fetch(address);
  const page = new DOMParser().parseFromString(await reply.text(), "text/html");
  const results = page.querySelector("article");
  // A later search may have been answered first.
  if (!reply.ok || !results || number !== newest) return;
  document.querySelector(".guide > nav")?.remove();
  document.querySelector(".guide article")?.replaceWith(results);
  document.title = page.title;
  // The first results are a new entry of the history, so that Back returns to the chapter.
  history[location.pathname === path ? "replaceState" : "pushState"](null, "", address);
}

/** Searches when the visitor pauses. `path`: that of the page of results. */
export const suggest = (event: InputEvent, path: string): void => {
  const field = event.currentTarget as HTMLInputElement;
  clearTimeout(timer);
  timer = setTimeout(() => show(field, path).catch(() => {}), 150);
};

addEventListener("popstate", () => {
  if (!location.hash) location.reload();
});
