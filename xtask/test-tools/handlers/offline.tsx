import { Live, page, service, table, text } from "bine";
import { Cold } from "./cold.tsx";
import { Colder } from "./colder.tsx";

// A page whose server is away for a while.
const notes = table("notes", { text: text() });

export const note = service((ctx, { text }: { text: string }) => notes.insert({ text }));

export default page(() => (
  <main>
    <h1>Notes</h1>
    <input id="draft" aria-label="Draft" />
    <button
      type="button"
      id="warm"
      onclick={async () => {
        const field = document.querySelector<HTMLInputElement>("#draft")!;
        document.querySelector("#noted")!.textContent = "sending";
        await note({ text: field.value });
        document.querySelector("#noted")!.textContent = `sent ${field.value}`;
        field.value = "";
      }}
    >
      Send
    </button>
    <Cold />
    <Colder />
    <p id="noted"></p>
    <Live>
      <ol>{notes.all().map(({ id, text }) => <li id={`note-${id}`}>{text}</li>)}</ol>
    </Live>
  </main>
));
