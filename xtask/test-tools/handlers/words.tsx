import { Live, browser, channel, event, navigate, page, service, table, text } from "bine";
import { shout } from "./effects.browser.ts";

const items = table("items", { title: text() });
const bell = event("bell");
const news = channel("news", { follow: "anyone", publish: "anyone" });
const rooms = channel("rooms/{room}", { follow: "anyone" });

export const ring = service((ctx, { text }: { text: string }) => bell.broadcast({ text }));
export const tell = service((ctx, { room, text }: { room?: string; text: string }) => {
  if (room) rooms.at(room).publish({ text });
  else news.publish(text, { event: "told" });
});
export const additem = service((ctx, { title }: { title: string }) => items.insert({ title }));
export const clear = service(() => items.all().forEach(({ id }) => items.remove(id)));
export const mark = service((ctx, { value }: { value: string }) => ctx.frame.set("marked", value));

const note = (target: string, text: string) => {
  const list = document.querySelector(target)!;
  list.append(`${text};`);
};
const double = (event: Event) => { (event.currentTarget as Element).textContent += "2"; };

const Button = ({ label, onpick }: { label: string; onpick?: (event: MouseEvent) => unknown }) => (
  <button type="button" id={label} onclick={onpick}>{label}</button>
);

export default page((ctx, { room = "hall" }) => (
  <main>
    <h1>Words</h1>
    <p
      id="heard"
      data-keep
      onappear={() => {
        note("#log", "appears");
        const stops = [
          bell.on(({ text }) => note("#heard", `bell ${text}`)),
          news.follow(({ data, event }) => note("#heard", `${event} ${data}`)),
          rooms.at(room).follow(({ data }) => note("#heard", `room ${data.text}`)),
        ];
        return () => {
          stops.forEach((stop) => stop());
          note("#log", "leaves");
        };
      }}
    />
    <p id="log" data-keep />
    <button type="button" id="follow-all" onclick={() => news.follow(({ data }) => note("#log", data), { after: "earliest" })}>All</button>
    <button type="button" id="gone" onclick={() => document.querySelector("#heard")!.remove()}>Remove</button>
    <Button label="first" onpick={browser((event) => note("#log", `first ${event.currentTarget!.id} ${room}`))} />
    <Button label="second" onpick={browser(() => additem({ title: room }))} />
    <Button label="none" />
    <button type="button" id="named" onclick={double}>a</button>
    <button type="button" id="shared" onclick={shout}>a</button>
    <label><input type="checkbox" id="kept" onclick={browser((event) => event.preventDefault())} /> Kept</label>
    <button type="button" id="leave" onclick={() => navigate("/other")}>Other</button>
    <button type="button" id="missing" onclick={() => navigate("/nowhere")}>Nowhere</button>
    <button type="button" id="mark" onclick={() => mark({ value: room })}>Mark</button>
    <Live>
      <ul id="items">
        {items.all().map((item) => (
          <li id={item.id} onappear={(event) => { const { id } = event.currentTarget; note("#log", `+${item.title}`); return () => note("#log", `-${id === item.id}`); }}>
            <Button label={item.title} onpick={browser(() => note("#log", `pick ${item.id}`))} />
          </li>
        ))}
      </ul>
      <p id="marked">{ctx.frame.get("marked") ?? "nothing"}</p>
    </Live>
  </main>
));
