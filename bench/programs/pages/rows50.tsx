import { page } from "bine";

import { messages } from "./tables.ts";

export const title = "Messages";

export default page(() => (
  <>
    <h1>Messages</h1>
    <ol>
      {messages.newest(50).map((message) => (
        <li>
          <b>{message.author}</b> <time>{message.at}</time>
          <p>{message.body}</p>
        </li>
      ))}
    </ol>
  </>
));
