import { Live, page, service, table, text } from "bine";
import { close } from "bine:services";
import { post } from "./forums.ts";
import { flash, MAX } from "./effects.browser.ts";
import * as sounds from "./sounds.browser.ts";

type Entry = { id: string; body: string; author: { name: string } };
const entries = table("entries", { body: text(), author: text() });
const LIMIT = 20;
const COLORS: Record<string, string> = { warning: "red", note: ["bl", "ue"].join("") };

/** Shared by both sides. */
export function problem(body: string): string | null {
  return body.length > LIMIT ? `${total(body.length)} too long` : null;
}
const total = (length: number): number => Math.max(0, length - LIMIT);

export const remove = service((ctx, { id }: { id: string }) => entries.remove(id));
const move = service((ctx, { id, to }: { id: string; to: number }) => id + to);
export { move as shift };

const Row = ({ entry, index, forum = "a" }: { entry: Entry; index: number; forum?: string }) => (
  <li
    id={entry.id}
    class="row"
    onclick={async (event: MouseEvent) => {
      const button = event.target as HTMLElement;
      await remove({ id: entry.id });
      button.remove();
    }}
    ondragstart={function (event) {
      event.dataTransfer!.setData("text", entry.id);
      flash(this_element(event), COLORS["note"] as string);
      function this_element(event: Event) { return event.currentTarget; }
    }}
    oninput={({ target }) => { (target as HTMLInputElement).setCustomValidity(problem((target as HTMLInputElement).value) ?? ""); }}
  >
    {entry.body}
    <button type="button" onclick={async () => { await move({ id: entry.id, to: index + 1 }); sounds.play(MAX, { forum }); }}>
      Down
    </button>
    <button type="button" onclick={() => { alert(entry.author.name + entry.author.name.length + forum); }}>Who</button>
  </li>
);

export default page((ctx) => {
  const mine = { a: [1, 2], name: ctx.session.name };
  return (
    <Live>
      <form ondone={() => close({})} onsubmit={(event) => { if (!confirm("?")) event.preventDefault(); }}>
        <input name="body" aria-label="Body" onkeydown={(event) => event.key === "Escape" && post({ text: mine.name, mine })} />
      </form>
      <ul>{entries.newest(LIMIT).map((entry, index) => <Row entry={{ ...entry, author: { name: entry.author } }} index={index} />)}</ul>
      <p>{problem("a")}</p>
    </Live>
  );
});
