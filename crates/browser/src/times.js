// Times of a page, in the visitor's language and time zone: a module of its own.
//
// The server writes `<time datetime="2026-11-23T14:05:00Z" data-time="relative"><span>23 Nov 2026,
// 14:05 UTC</span></time>`. The visitor's text is in a shadow root of the span, which hides the text
// of the server. So the nodes of the page remain those of the server: a patch finds them unchanged,
// and no text appears for a moment.

const { languages } = navigator;
const format = (dateStyle, timeStyle) => new Intl.DateTimeFormat(languages, { dateStyle, timeStyle });
const full = format("full", "long");
const formats = { __proto__: null, date: format("medium"), "date-time": format("medium", "short") };
const [distance, now] = ["always", "auto"].map((numeric) => new Intl.RelativeTimeFormat(languages, { numeric }));
const lang = full.resolvedOptions().locale;
// Units of relative times with their lengths in milliseconds. From a week on, a date is clearer.
const units = [["minute", 6e4], ["hour", 36e5], ["day", 864e5]];
const week = 6048e5;
let timer;

// Shows all times of the page, and again when the first relative time changes.
function showTimes() {
  // A timer of hours drifts when the computer sleeps.
  let wait = 36e5;
  for (const element of document.querySelectorAll("time[data-time]")) {
    const { dateTime, dataset, firstElementChild: place } = element;
    const at = Date.parse(dateTime);
    if (!place || isNaN(at)) continue;
    let text = formats[dataset.time]?.format(at);
    if (dataset.time === "relative") {
      const past = Date.now() - at;
      const size = Math.abs(past);
      const [unit, length] = units.findLast(([, length]) => size >= length) ?? ["second", 6e4];
      const count = Math.trunc(past / length);
      text = size >= week ? formats.date.format(at) : count ? distance.format(-count, unit) : now.format(0, unit);
      wait = Math.min(wait, past < 0 ? (size % length) + 1 : length - (size % length));
    }
    if (text) write(place, text, full.format(at));
  }
  clearTimeout(timer);
  timer = setTimeout(showTimes, wait);
}

// Shows a text in place of the server's, if it is not shown yet.
function write(place, text, title) {
  const root = place.shadowRoot ?? place.attachShadow({ mode: "open" });
  const shown = root.firstChild ?? root.appendChild(document.createElement("span"));
  if (shown.textContent !== text) shown.textContent = text;
  if (shown.title !== title) Object.assign(shown, { lang, title });
}

showTimes();
document.addEventListener("bine:patch", showTimes);
// A hidden page runs no timers.
document.addEventListener("visibilitychange", showTimes);
addEventListener("pageshow", showTimes);
