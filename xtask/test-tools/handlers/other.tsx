import { page } from "bine";

export default page(() => (
  <main>
    <h1>Other</h1>
    <button type="button" id="here" onclick={() => { document.title = "here"; }}>Here</button>
  </main>
));
