import { page } from "bine";

// Breaks the policy of pages, and throws, on purpose: a test needs to know that it would see either.
export default page(() => (
  <main>
    <h1>Violates</h1>
    <button
      type="button"
      id="violate"
      onclick={() => {
        const script = document.createElement("script");
        script.textContent = "document.title = 'violated'";
        document.body.append(script);
      }}
    >
      Violate
    </button>
    <button type="button" id="throw" onclick={() => { throw new Error("on purpose"); }}>Throw</button>
  </main>
));
