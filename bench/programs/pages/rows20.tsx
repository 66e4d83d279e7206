import { page } from "bine";

import { entries } from "./tables.ts";

export const title = "Visits";

export default page(() => (
  <>
    <h1>Visits</h1>
    <ul>
      {entries.newest(20).map((entry) => (
        <li id={entry.number}>
          {entry.body} <i>{entry.author}</i>
        </li>
      ))}
    </ul>
  </>
));
