import { Live, boolean, error, page, redirect, service, table, text } from "bine";
import { problem } from "./checks.browser.ts";

const tasks = table("tasks", {
  title: text().min(1).max(20).label("Title"),
  done: boolean().default(false),
});
const ATTACK = "\"'><img src=x onerror=\"document.title='attacked'\"><script>document.title='attacked'</script>";

export const add = service((ctx, { title }: { title: string }) => {
  if (problem(title) !== null) return error(422, "The browser let this pass.");
  return tasks.insert({ title });
});
export const complete = service((ctx, { id, done }: { id: string; done: boolean }) => tasks.update(id, { done }));
export const remove = service((ctx, { id }: { id: string }) => {
  if (tasks.get(id)?.done !== true) throw error(409, "Complete the task first.");
  tasks.remove(id);
});
export const away = service(() => redirect("/other"));

const Task = ({ task }: { task: { id: string; title: string; done: boolean } }) => (
  <li id={task.id} class={task.done ? "done" : "open"}>
    <input
      type="checkbox"
      aria-label={task.title}
      checked={task.done}
      onchange={async (event) => {
        const box = event.currentTarget as HTMLInputElement;
        await complete({ id: task.id, done: box.checked });
      }}
    />
    <span>{task.title}</span>
    <button
      type="button"
      class="remove"
      onclick={async (event) => {
        const item = (event.currentTarget as HTMLElement).closest("li");
        // Gone at once. A rejection shows it again.
        item?.classList.add("removing");
        try {
          await remove({ id: task.id });
        } finally {
          item?.classList.remove("removing");
        }
      }}
    >
      Remove
    </button>
  </li>
);

export default page(() => (
  <main>
    <h1>Tasks</h1>
    <button
      type="button"
      id="count"
      onclick={(event) => {
        const button = event.currentTarget as HTMLElement;
        button.textContent = String(Number(button.textContent) + 1);
      }}
    >
      0
    </button>
    <button
      type="button"
      id="wait"
      onclick={async () => {
        await new Promise((resolve) => Object.assign(window, { go: resolve }));
        document.title = "waited";
      }}
    >
      Wait
    </button>
    <p id="shown"></p>
    <div onclick={() => { document.title += " outer"; }}>
      <button type="button" id="stops" onclick={(event) => { document.title = "inner"; event.stopPropagation(); }}>Stops</button>
      <button type="button" id="passes" onclick={() => { document.title = "inner"; }}>Passes</button>
    </div>
    <button type="button" id="attack" onclick={() => { document.getElementById("shown")!.textContent = ATTACK; }}>Attack</button>
    {["first", ATTACK].map((word, index) => (
      <button
        type="button"
        class="word"
        onclick={() => { document.getElementById("shown")!.textContent = `${index} ${word}`; }}
      >
        Word
      </button>
    ))}
    <a href="/other" id="link" onclick={(event) => { if (!document.body.dataset.leave) event.preventDefault(); }}>Other</a>
    <form
      action={add}
      onsubmit={(event) => {
        const form = event.currentTarget as HTMLFormElement;
        const found = problem(new FormData(form).get("title") as string);
        document.getElementById("shown")!.textContent = found ?? "sent";
        if (found !== null) event.preventDefault();
      }}
      ondone={() => { document.body.dataset.added = "yes"; }}
    >
      <input name="title" aria-label="Title" oninput={(event) => {
        const field = event.currentTarget as HTMLInputElement;
        field.classList.toggle("wrong", problem(field.value) !== null);
      }} />
      <button>Add</button>
    </form>
    <form action={away}><button id="away">Away</button></form>
    <Live>
      <ul>{tasks.all().map((task) => <Task task={task} />)}</ul>
    </Live>
  </main>
));
