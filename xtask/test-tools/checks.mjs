// Runs checks and prints a line for each: `holds: CLAIM` or `fails: CLAIM: WHY`.

/** Runs each check, a function that throws on failure; then the program ends. */
export async function runChecks(checks) {
  for (const [claim, check] of Object.entries(checks)) {
    try {
      await check();
      console.log(`holds: ${claim}`);
    } catch (error) {
      process.exitCode = 1;
      console.log(`fails: ${claim}: ${String(error).replace(/\s+/g, " ")}`);
    }
  }
  process.exit();
}
