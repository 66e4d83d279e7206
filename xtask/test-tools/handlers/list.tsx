import { Live, boolean, error, integer, page, service, table, text } from "bine";
import { problem } from "./checks.browser.ts";

// A list that its handlers change at once. A service decides, and a patch brings its decision.
const plans = table("plans", { title: text(), isDone: boolean().default(false), place: integer().default(0) });

export const plan = service((ctx, { title }: { title: string }) => {
  if (problem(title) !== null || title === "Refused") return error(422, "This title is refused.");
  return plans.insert({ title, place: plans.count() });
});
export const strike = service((ctx, { id }: { id: string }) => {
  if (plans.get(id)?.title === "Locked") return error(409, "The plan is locked.");
  plans.update(id, { isDone: true });
});
export const drop = service((ctx, { id }: { id: string }) => {
  if (plans.get(id)?.title === "Locked") return error(409, "The plan is locked.");
  plans.remove(id);
});
/** Moves a plan to the place of another one. */
export const move = service((ctx, { id, to }: { id: string; to: string }) => {
  const ids = plans.orderBy("place").all().map((one) => one.id);
  const [from, place] = [ids.indexOf(id), ids.indexOf(to)];
  if (from < 0 || place < 0) return error(404, "The plan has been removed.");
  ids.splice(place, 0, ...ids.splice(from, 1));
  ids.forEach((one, index) => plans.update(one, { place: index }));
});

const Plan = ({ plan, before, after }: { plan: { id: string; title: string; isDone: boolean }; before?: string; after?: string }) => (
  <li
    id={`plan-${plan.id}`}
    class={plan.isDone ? "done" : "open"}
    draggable="true"
    tabindex="0"
    ondragstart={(event) => event.dataTransfer!.setData("text/plain", plan.id)}
    ondragover={(event) => event.preventDefault()}
    ondrop={(event) => {
      event.preventDefault();
      return move({ id: event.dataTransfer!.getData("text/plain"), to: plan.id });
    }}
    onkeydown={async (event) => {
      const to = event.key === "ArrowUp" ? before : event.key === "ArrowDown" ? after : undefined;
      if (!event.altKey || to === undefined) return;
      event.preventDefault();
      await move({ id: plan.id, to });
    }}
  >
    <span>{plan.title}</span>
    <button
      type="button"
      class="strike"
      onclick={async (event) => {
        const item = event.currentTarget.closest("li")!;
        item.classList.add("done");
        try {
          await strike({ id: plan.id });
        } catch (refusal) {
          item.classList.remove("done");
          throw refusal;
        }
      }}
    >
      Done
    </button>
    <button
      type="button"
      class="drop"
      onclick={async (event) => {
        const item = event.currentTarget.closest("li")!;
        item.hidden = true;
        try {
          await drop({ id: plan.id });
        } catch (refusal) {
          item.hidden = false;
          throw refusal;
        }
      }}
    >
      Remove
    </button>
  </li>
);

export default page(() => (
  <main>
    <h1>Plans</h1>
    <form
      id="adds"
      action={plan}
      onsubmit={async (event) => {
        event.preventDefault();
        const form = event.currentTarget;
        const title = new FormData(form).get("title") as string;
        const item = document.createElement("li");
        item.className = "pending";
        item.textContent = title;
        document.querySelector("#plans")!.append(item);
        try {
          await plan({ title });
          form.reset();
        } catch (refusal) {
          item.remove();
          throw refusal;
        }
      }}
    >
      <input name="title" aria-label="Title" />
      <button>Add</button>
    </form>
    <Live>
      <ul id="plans">
        {plans.orderBy("place").all().map((plan, index, all) => (
          <Plan plan={plan} before={all[index - 1]?.id} after={all[index + 1]?.id} />
        ))}
      </ul>
    </Live>
  </main>
));
