import { Live, now, page, service, table, text } from "bine";

const messages = table("messages", { body: text().min(1).max(500), author: text(), at: now() });

export const post = service((ctx, { body }: { body: string }) =>
  messages.insert({ body, author: ctx.session.name }));

export default page(() => (
  <>
    <h1>Messages</h1>
    <form action={post}>
      <input name="body" aria-label="Message" placeholder="Write a message" required maxlength="500" />
      <button>Post</button>
    </form>
    <Live>
      <ul aria-live="polite">
        {messages.newest(50).map((message) => (
          <li id={message.id}><b>{message.author}</b> {message.body}</li>
        ))}
      </ul>
    </Live>
  </>
));
