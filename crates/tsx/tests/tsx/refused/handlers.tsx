import { browser, channel, event, navigate, page, service, table, text, session } from "bine";
import { close } from "bine:services";
import * as forums from "./forums.ts";

const entries = table("entries", { body: text() });
const hidden = service((ctx, { id }: { id: string }) => id);
let count = 0;
const made = compute();
class Shape { area = 1; }
const [first] = [1];
function compute() { return entries.newest(3).length; }
const indirect = (a: number) => a + nested();
const nested = () => compute();
const markup = () => <b>a</b>;
const bell = event("bell");
const rooms = channel("rooms/{room}");
const news = channel("news");
const named = "a";
const other = channel(named);
const inner = browser(() => 1);
export const post = service((ctx, { id }: { id: string }) => id);

export default page((ctx) => {
  let changing = 1;
  changing += 1;
  const seen = [1];
  const local = { n: 1 };
  function helper() { return 1; }
  class Local {}
  return (
    <ul data-n={changing}>
      <li onclick={() => documnet.title}>a</li>
      <li onclick={() => process.exit()}>a</li>
      <li onclick={() => entries.newest(3)}>a</li>
      <li onclick={() => session.get("a")}>a</li>
      <li onclick={() => hidden({ id: "1" })}>a</li>
      <li onclick={() => count}>a</li>
      <li onclick={() => made}>a</li>
      <li onclick={() => new Shape()}>a</li>
      <li onclick={() => first}>a</li>
      <li onclick={() => indirect(1)}>a</li>
      <li onclick={() => markup()}>a</li>
      <li onclick={() => forums.post({})}>a</li>
      <li onclick={() => changing}>a</li>
      <li onclick={() => { local.n = 2; seen[0]++; }}>a</li>
      <li onclick={() => helper()}>a</li>
      <li onclick={() => new Local()}>a</li>
      <li onclick={() => this}>a</li>
      <li onclick={() => arguments[0]}>a</li>
      <li onclick={() => <b>a</b>}>a</li>
      <li onclick={() => import("./a.ts")}>a</li>
      <li onclick={() => import.meta.url}>a</li>
      <li onclick={post}>a</li>
      <li onclick={post({ id: "1" })}>a</li>
      <li onclick={close}>a</li>
      <li onclick={indirect}>a</li>
      <li onclick={nowhere}>a</li>
      <li onclick={[() => 1]}>a</li>
      <li onclick={() => inner}>a</li>
      <li onclick={() => bell.broadcast(1)}>a</li>
      <li onclick={() => rooms.follow(() => 1)}>a</li>
      <li onclick={() => news.publish("a")}>a</li>
      <li onclick={() => news.name}>a</li>
      <li onclick={() => alert(news)}>a</li>
      <li onclick={() => other.follow(() => 1)}>a</li>
      <li onclick={() => { post({ id: "1" }); }}>a</li>
      <li onclick={() => { if (post({ id: "1" })) close({}); }}>a</li>
      <li onclick={() => post({ id: "1" }).length}>a</li>
      <li onclick={async () => { const text = `${close({})}` + post({ id: "1" }); alert(text); }}>a</li>
      <li onclick={async () => { ctx && post({ id: "1" }); await post({ id: "1" }); void post({ id: "1" }); }}>a</li>
      <li onclick={() => { post({ id: "1" }).then(alert); }}>a</li>
      <li data-n={browser(inner)}>a</li>
      <li data-n={browser(() => post({ id: "1" }), 1)}>a</li>
      <li data-n={browser(() => { changing = 2; })}>a</li>
      <li onClick={() => 1}>a</li>
      <li ondropp={() => 1}>a</li>
      <li data-on="click: hide this" onclick={() => 1}>a</li>
    </ul>
  );
});
export const place = () => (typeof location === "object" ? document.title : "");
