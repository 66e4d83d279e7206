import { page } from "bine";

export default page(() => (
  <>
    <h1>It works</h1>
    <p>This page is <code>index.tsx</code>. Change it and reload.</p>
  </>
));
