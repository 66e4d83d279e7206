import { Live, page, service, table, text } from "bine";

// Texts of visitors, as content, as attributes, and as values of handlers.
const words = table("words", { text: text() });
const CONSTANT = "</script>\u2028\u2029'\"`${1}\\u0022<!--\ud800";

export const say = service((ctx, { text }: { text: string }) => words.insert({ text }));

export default page(() => (
  <main>
    <h1>Texts</h1>
    <button type="button" id="constant" onclick={() => { document.title = JSON.stringify(CONSTANT); }}>Constant</button>
    <Live>
      <ul>
        {words.oldest(100).map(({ id, text }) => (
          <li id={`word-${id}`}>
            <button
              type="button"
              title={text}
              aria-label={`Shows ${text}`}
              onclick={() => { document.querySelector("#shown")!.textContent = text; }}
            >
              {text}
            </button>
            <button
              type="button"
              class="nested"
              onclick={() => { document.querySelector("#shown")!.textContent = [text].concat(Object.keys({ [text]: 1 })).join("\n"); }}
            >
              Nested
            </button>
          </li>
        ))}
      </ul>
    </Live>
    <p id="shown"></p>
  </main>
));
