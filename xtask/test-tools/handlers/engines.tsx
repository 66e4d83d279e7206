import { page, service } from "bine";
import { compare, differences, results } from "./engines.browser.ts";

/** Runs the functions in the engine of the server. Inputs and results are JSON, so that no text is changed on its way. */
export const compute = service((ctx, { inputs }: { inputs: string }) => results(inputs));
export const differ = service(() => differences());

export default page(() => (
  <main>
    <h1>Engines</h1>
    <textarea id="inputs" aria-label="Inputs" hidden></textarea>
    <button
      type="button"
      id="compare"
      onclick={async () => {
        const inputs = document.querySelector<HTMLTextAreaElement>("#inputs")!.value;
        document.querySelector("output")!.value = compare(await compute({ inputs }), results(inputs));
      }}
    >
      Compare
    </button>
    <button type="button" id="differ" onclick={() => { document.querySelector("output")!.value = differences(); }}>Differ</button>
    <output hidden></output>
  </main>
));
