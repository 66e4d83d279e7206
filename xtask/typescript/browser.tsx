import { browser, channel, event, navigate, page, sealed, service, type Sealed } from "bine";

const bell = event("bell");
const news = channel("news");
const rooms = channel("rooms/{room}");
export const reply = service((ctx, { id, answer, at }: { id: Sealed<string>; answer: string; at?: Sealed<number> }) => id.length + answer + at);

const Pick = ({ onpick }: { onpick: (event: MouseEvent) => unknown }) => <b onclick={onpick}>a</b>;

export default page((ctx) => {
  const ticket = sealed(reply, { id: "1" });
  const both = sealed(reply, { id: "1", at: 1 });
  sealed(reply, { id: 1 }); // rejected: 'number' is not assignable to type 'string'
  sealed(reply, { answer: "yes" }); // rejected: 'answer' does not exist
  return (
    <main onappear={() => news.follow(({ data, cursor }) => navigate(`/${cursor}${data}`), { after: "earliest" })}>
      <p onclick={() => reply({ ...ticket, answer: "yes" })}>a</p>
      <p onclick={() => reply({ ...both, answer: "yes" })}>a</p>
      <p onclick={() => reply({ id: "1", answer: "yes" })}>a</p> // rejected: 'string' is not assignable
      <p onclick={() => reply(ticket)}>a</p> // rejected: 'answer' is missing
      <p onclick={() => navigate(1)}>a</p> // rejected: 'number' is not assignable
      <p onappear={() => bell.on(1)}>a</p> // rejected: 'number' is not assignable
      <p onappear={() => rooms.follow(() => 1)}>a</p> // rejected: 'follow' does not exist
      <p onappear={() => rooms.at("hall").follow(() => 1)}>a</p>
      <Pick onpick={browser((event) => event.clientX)} />
      <Pick onpick={browser((event) => event.key)} /> // rejected: 'key' does not exist
      <Pick onpick={browser(1)} /> // rejected: 'number' is not assignable
    </main>
  );
});
