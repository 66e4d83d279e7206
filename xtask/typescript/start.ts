// Uses of the words of `bine:start` that an editor accepts, and those that it rejects.

import {
  error, filter, group, redirect, respond, rewrite, rule, scheduler, withHeaders, type FilterRequest, type Policy,
  type ScheduledRequest,
} from "bine:start";

rule("/admin/*", "read", "group:staff", "ann");
rule("news/*", "publish", "administrators");
group("staff", "ann", "ben");
group("empty");

filter((request) => {
  if (request.path === "/old") return redirect("/new", 308);
  if (request.header("user-agent")?.includes("Robot")) return error(403, `No ${request.method} for robots.`);
  if (request.user === null && request.address !== null) throw respond("{}", { type: "application/json", headers: { "X-A": "1" } });
  if (request.host === null) return;
  return withHeaders({ "X-Query": request.query });
});
filter(({ path }: FilterRequest) => rewrite(`/shop${path}`, { headers: { "X-A": "1" } }), { paths: ["/hats/*"] });
filter(() => {}, {});

const fair = (): Policy => {
  const served = new Map<string, number>();
  const count = (request: ScheduledRequest) => served.get(request.address ?? "") ?? 0;
  return {
    admit: (request, load) => load.waiting < 100 || request.handler === "home",
    next(waiting, { running, places }) {
      if (running.length > places / 2) return waiting.find((one) => one.age > 100) ?? null;
      const [first] = [...waiting].sort((one, other) => count(one) - count(other));
      if (first !== undefined) served.set(first.address ?? "", count(first) + 1);
      return first;
    },
  };
};
scheduler(fair, { places: 4 });
scheduler(() => ({ next: (waiting) => waiting.at(-1) }));

rule("/admin/*", "raed", "ann"); // rejected: '"raed"' is not assignable
rule("/admin/*", "read"); // rejected: Expected at least 3 arguments
rule("/admin/*", "read", 7); // rejected: Argument of type 'number'
group(7); // rejected: Argument of type 'number'
filter(async () => {}); // rejected: Promise<void>
filter(() => "text"); // rejected: Type 'string' is not assignable
filter(() => {}, { path: "/a" }); // rejected: 'path' does not exist
filter((request) => { request.path = "/"; }); // rejected: read-only
filter((request) => error(403, request.user.name)); // rejected: 'request.user' is possibly 'null'
redirect("/", 200); // rejected: Argument of type '200'
withHeaders({ "X-A": 1 }); // rejected: Type 'number' is not assignable
respond("a", { statu: 201 }); // rejected: 'statu'
scheduler({ next: () => null }); // rejected: does not exist in type '() => Policy'
scheduler(() => ({ next: () => 1 })); // rejected: Type 'number' is not assignable
scheduler(() => ({ next: (waiting) => waiting[0] }), { places: "4" }); // rejected: Type 'string' is not assignable
