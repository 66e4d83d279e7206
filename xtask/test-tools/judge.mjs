// Decides how a judge tells what it finds: a line for each claim, `holds: CLAIM` or `fails: CLAIM: WHY`.

/** Looks at each claim, whose function throws if it is wrong; then the program ends. */
export async function judge(claims) {
  for (const [claim, check] of Object.entries(claims)) {
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
