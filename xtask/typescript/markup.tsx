// Markup that an editor accepts, and markup that it rejects. A line of the second kind ends with
// the beginning of a comment, `rejected:`, and a part of the message.

import { Live, raw, service } from "bine";

const post = service((ctx, { body }: { body: string }) => body);
const names = ["a", "b"];
const isOpen = names.length > 1;

const Card = ({ title, children }: { title: string; children?: any }) => (
  <section class={["card", isOpen && "open"]}>
    <h2>{title}</h2>
    {children}
  </section>
);

export const accepted = (
  <html lang="en">
    <head>
      <meta charset="utf-8" />
      <title>Names: {names.length}</title>
      <style>{raw("p { color: green }")}</style>
    </head>
    <body>
      <Card title="All">
        {null}
        {names.map((name) => <p id={name} data-name={name} aria-hidden="true" tabindex={-1}>{name}</p>)}
      </Card>
      <Live><p>{isOpen && <b>open</b>}</p></Live>
      <form action={post} data-on="done: hide this">
        <label for="body">Message</label>
        <input id="body" name="body" required maxlength="500" autofocus={isOpen} />
        <textarea name="more" rows={3}>{names}</textarea>
        <select name="one"><option selected>a</option></select>
        <button formaction={post} onclick="alert(1)" class="wide">Post</button>
      </form>
      <a href="/next" download>next</a>
      <svg viewBox="0 0 8 8" class="icon"><path d="M0 0h8v8z" fill="none" /><a href="/b">b</a></svg>
      <math><mi>x</mi></math>
      <my-element size={3} other="x">text</my-element>
      <></>
    </body>
  </html>
);

export const element = <buton>Post</buton>; // rejected: Property 'buton' does not exist
export const attribute = <a herf="/next">next</a>; // rejected: 'herf' does not exist
export const react = <p className="wide">text</p>; // rejected: 'className'
export const label = <label htmlFor="body">text</label>; // rejected: 'htmlFor'
export const word = <button type="sumbit">Post</button>; // rejected: Did you mean '"submit"'?
export const count = <input maxlength="many" />; // rejected: Type '"many"' is not assignable
export const flag = <input required="required" />; // rejected: is not assignable to type 'Flag'
export const state = <button aria-expanded={isOpen}>Post</button>; // rejected: is not assignable
export const image = <img src="/a.png">text</img>; // rejected: children
export const object = <p>{{ name: "a" }}</p>; // rejected: 'name' does not exist in type
export const date = <p>{new Date()}</p>; // rejected: is not assignable to type
export const handler = <button onclick={(event) => event.curentTarget}>Post</button>; // rejected: Did you mean 'currentTarget'?
export const event = <input oninput={(event) => event.currentTarget.files2} />; // rejected: Did you mean 'files'?
export const property = <Card titel="All" />; // rejected: 'titel'
export const missing = <Card />; // rejected: Property 'title' is missing
export const obsolete = <center>text</center>; // rejected: Property 'center' does not exist
export const trusted = <p title={raw("a")}>text</p>; // rejected: is not assignable to type
export const raw_text = <textarea>{<b>text</b>}</textarea>; // rejected: is not assignable to type
