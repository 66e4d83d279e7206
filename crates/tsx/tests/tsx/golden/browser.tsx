import { Live, browser, channel, event, navigate, page, service, table, text } from "bine";
import { news as shared } from "./news.ts";
import { flash } from "./effects.browser.ts";

const tasks = table("tasks", { title: text() });
const bell = event("bell");
const rooms = channel("rooms/{room}", { follow: "anyone" });
const log = channel("log");
export const remove = service((ctx, { id }: { id: string }) => tasks.remove(id));

/** A handler by its name. */
function stop(event: Event): void {
  event.preventDefault();
}
const count = (event: Event) => { (event.currentTarget as HTMLElement).textContent += "!"; };
/** A handler of the module. */
const close = browser(() => navigate("/"));

type Pick = (event: MouseEvent) => unknown;
const Row = ({ title, onpick, onwheel }: { title: string; onpick?: Pick; onwheel?: Pick }) => (
  <li onclick={onpick} onkeydown={(event) => stop(event)} onwheel={onwheel ?? null} title={title}>{title}</li>
);

export default page((ctx, { room = "hall" }) => {
  const mine = { pick: close };
  return (
    <main
      onappear={() => {
        const stops = [
          bell.on((data) => flash(data as string)),
          shared.follow(({ data }) => flash(data)),
          rooms.at(room).follow(({ data }) => flash(data), { after: "earliest" }),
          log.follow(() => void remove({ id: "1" })),
        ];
        return () => stops.forEach((stop) => stop());
      }}
    >
      <p onclick={close} onmousedown={mine.pick} onmouseup={stop} onkeyup={count} onfocus={flash}>{room}</p>
      <Live>
        <ul>{tasks.all().map((task) => (
          <Row
            title={task.title}
            onpick={browser(async (event: MouseEvent) => {
              event.stopPropagation();
              await remove({ id: task.id });
            })}
          />
        ))}</ul>
        <p onclick={ctx.user ? browser(() => navigate(`/rooms/${room}`)) : null}>{room}</p>
      </Live>
    </main>
  );
});
