// Shows the results of a search while the visitor writes. Without this script, Enter does it.
const form = document.querySelector("form.search");
const field = form.elements.q;
let timer;
let newest = 0;

async function show() {
  const number = ++newest;
  const address = `${form.action}?q=${encodeURIComponent(field.value)}`;
  const reply = await fetch(address);
  const page = new DOMParser().parseFromString(await reply.text(), "text/html");
  const results = page.querySelector("article");
  // A later search may have been answered first.
  if (!reply.ok || !results || number !== newest) return;
  document.querySelector(".guide > nav")?.remove();
  document.querySelector(".guide article").replaceWith(results);
  document.title = page.title;
  // The first results are a new entry of the history, so that Back returns to the chapter.
  const change = location.pathname === new URL(form.action).pathname ? "replaceState" : "pushState";
  history[change](null, "", address);
}

field.addEventListener("input", () => {
  clearTimeout(timer);
  timer = setTimeout(() => show().catch(() => {}), 150);
});
addEventListener("popstate", (event) => {
  if (!location.hash) location.reload();
});
