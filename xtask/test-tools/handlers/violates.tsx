import { page } from "bine";

// Breaks the policy of pages on purpose: a test needs to know that it would see a violation.
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
  </main>
));
