// Renews the numbers on the front page once a second while the page is visible. A live region would
// hold a connection: a browser opens six to one server, and the two windows of the page hold two.
async function renew() {
  if (document.hidden) return;
  const reply = await fetch("/numbers");
  const page = new DOMParser().parseFromString(await reply.text(), "text/html");
  const numbers = page.querySelector("dl");
  if (numbers) document.querySelector("dl").replaceWith(numbers);
}

function wait() {
  setTimeout(() => renew().catch(() => {}).then(wait), 1000);
}

wait();
