// Runs the public suite of the Durable Streams protocol against the server at SERVER.

import { runConformanceTests } from "@durable-streams/server-conformance-tests"

runConformanceTests({ baseUrl: process.env.SERVER })
