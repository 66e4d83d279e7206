// The global names of browsers, for handlers (`onclick={() => ..}`) and files `.browser.ts`. Code of the
// server has those of the language, `console`, timers, `fetch` and its classes, `URL`, `URLSearchParams`,
// `TextEncoder`, `TextDecoder`, `AbortController`, `crypto`, `performance`, `structuredClone`, `atob` and
// `btoa`; any other name of a browser in it is an error when the application is loaded.

/// <reference lib="dom" />
/// <reference lib="dom.iterable" />
/// <reference lib="dom.asynciterable" />
export {};
