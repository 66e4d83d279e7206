import { Live, tree } from "bine";

export const live = tree(<main><Live><p>a</p></Live></main>);
export const misplaced = tree(<ul><p>a</p></ul>);
export const unknown = tree(<p>{[1].map((n) => <buton>{n}</buton>)}</p>);
export const handler = tree(<p onclick={() => 1}>a</p>);
export const handler = () => tree(<button type="button" onclick={() => alert(1)}>a</button>);
