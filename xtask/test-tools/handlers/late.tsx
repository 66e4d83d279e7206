import { page } from "bine";

export default page(() => (
  <main>
    <h1>Late</h1>
    <button type="button" id="late" onclick={() => { document.title = "late"; }}>Late</button>
  </main>
));
