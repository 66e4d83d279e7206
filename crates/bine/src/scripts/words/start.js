// The words of the start script.
export { error, filter, group, redirect, respond, rewrite, rule, scheduler, withHeaders } from "bine:internal/start";
