import { table, text, now, service, page, Live } from "bine";
const messages = table("messages", { forum: text().index(), body: text().max(500), author: text().index(), at: now() });

export const post = service((ctx, { forum, body }: { forum: string; body: string }) =>
  messages.insert({ forum, body, author: ctx.user.name }));

export default page((ctx, { forum = "Ubuntu" }) => (
  <main>
    <h1>{forum}</h1>
    <Live>
      <ul>{messages.by("forum", forum).newest(50).map((m) => <li id={m.id}>{m.body} <small>by {m.author}</small></li>)}</ul>
    </Live>
    <form action={post}>
      <input type="hidden" name="forum" value={forum} />
      <input name="body" required maxlength="500" /> <button>Post</button>
    </form>
  </main>
));
