// Calls words, methods and functions of the host with any values, as bytes describe it.

import * as words from "bine";
import * as tables from "bine:internal/tables-host";
import * as call from "bine:internal/call";
import { rustService } from "bine:internal/context";
import { $html, $live, $markup } from "bine:runtime";

const { boolean, bytes, choice, integer, now, number, ref, table, text, time } = words;

const messages = table("messages", { forum: text().index(), body: text().max(500), author: text().index(), at: now() });
const marks = table(
  "marks",
  {
    message: ref(messages).optional().onRemove("null"), stars: integer().min(-3).max(3).optional(), weight: number().default(1),
    word: choice("open", "closed").default("open"), raw: bytes().max(10).optional(), when: time().optional(), is: boolean().default(false),
  },
  { indexes: [["word", "stars"]] },
);
const paragraph = $markup(["<p>", "</p>"], ["t"]);

// The bytes that are left, and how deep the calls are nested.
let left = [], place = 0, depth = 0;
const next = () => (place < left.length ? left[place++] : 0);

/** A further call, from where the host reads a value. */
const step = () => {
  if (depth > 12 || place >= left.length) return undefined;
  depth++;
  try {
    return one();
  } finally {
    depth--;
  }
};

const samples = [
  () => undefined, () => null, () => true, () => false, () => 0, () => -0, () => 1, () => 2, () => -1, () => 1.5, () => NaN,
  () => Infinity, () => 2 ** 53, () => 1e300, () => 10n, () => Symbol("a"), () => "", () => "forum", () => "body", () => "at",
  () => "id", () => "stars", () => "word", () => "open", () => "message", () => "descending", () => "user-agent",
  () => "\ud800", () => "x".repeat(501), () => "x".repeat(1 << 16), () => "__proto__", () => "constructor", () => "/a/b",
  () => "00000000-0000-7000-8000-000000000000", () => messages.newest(1)[0]?.id, () => marks.newest(1)[0]?.id,
  () => 200 + next(), () => next(), () => `${next()}`, () => [], () => [undefined], () => [, 1], () => ["forum", "a"],
  () => ["at", { from: 0 }], () => [[]], () => ({}), () => ({ forum: "a", body: "b", author: "c" }),
  () => ({ stars: next() - 100, word: "open" }), () => ({ message: messages.newest(1)[0]?.id }), () => ({ forum: 1 }),
  () => ({ size: next() }), () => ({ size: 1, after: "x" }), () => ({ at: { from: 1 } }), () => [{ forum: "a", body: "b", author: "c" }],
  () => ({ get forum() { return step(); } }), () => ({ toString: () => step(), valueOf: () => step() }),
  () => ({ then: (done) => done(step()) }), () => ({ toJSON: () => step() }), () => ({ [Symbol.iterator]: () => step() }),
  () => new Proxy({}, { get: () => step(), ownKeys: () => { step(); return []; } }), () => new Proxy([], { get() { throw new Error("proxy"); } }),
  () => JSON.parse('{"__proto__":{"a":1}}'), () => { const a = {}; a.a = a; return a; }, () => Object.create(null),
  () => Object.create({ forum: "a" }), () => new Date(0), () => new Date(NaN), () => new Uint8Array(3), () => new Map(), () => /x/,
  () => () => step(), () => () => { step(); throw new Error("thrown"); }, () => async () => step(), () => class {}, () => step,
  () => Promise.resolve(1), () => new Promise(() => {}), () => new Error("x"), () => new String("forum"), () => globalThis,
  () => messages, () => marks, () => text(), () => messages.by("forum", "a"), () => messages.groupBy("forum"),
  () => $html(paragraph, "a"), () => $html(paragraph, step()), () => words.raw("<b>"), () => words.redirect("/"),
  () => ({ kind: "text" }), () => [["a", { kind: "text", max: -1 }]], () => [["a", { kind: "choice", words: [1] }]], () => ref("messages"),
];

const methods = (object) =>
  Object.getOwnPropertyNames(Object.getPrototypeOf(object)).map((name) => object[name]);
const functions = [
  ...Object.values(tables), ...Object.values(call), ...Object.values(words), ...methods(messages), ...methods(marks.by("word", "open")),
  ...methods(messages.groupBy("forum")), ...methods(text()), $html, $live, $markup, rustService,
].filter((each) => typeof each === "function");
const receivers = [undefined, messages, marks, messages.by("forum", "a"), text(), undefined, undefined, undefined];

/** What a script must never see: a failure of the host itself. */
const isDefect = (reason) => reason instanceof Error && /a defect|panicked/.test(reason.message);

let defect = null;
const caught = (reason) => {
  if (isDefect(reason)) defect ??= reason;
};

/** One call. Its result receives later ones. */
const one = () => {
  const called = functions[next() % functions.length];
  const receiver = receivers[next() % receivers.length];
  const keep = next() % receivers.length;
  const count = next() % 7;
  try {
    const passed = [];
    for (let index = 0; index < count; index++) passed.push(samples[next() % samples.length]());
    const result = called.apply(receiver, passed);
    if (result instanceof Promise) result.catch(caught);
    if (keep > 4 && result !== null && typeof result === "object") receivers[keep] = result;
    return result;
  } catch (reason) {
    caught(reason);
  }
};

const begin = (bytes) => {
  left = bytes;
  place = depth = 0;
};
const end = () => {
  if (defect !== null) throw defect;
};

export const run = (bytes) => {
  begin(bytes);
  while (place < left.length) one();
  end();
};

/** The same with waits between the calls, and changes of tables around some. */
export const runLater = async (bytes) => {
  begin(bytes);
  while (place < left.length) {
    const result = next() % 2 ? words.change(one) : one();
    if (result instanceof Promise) await Promise.race([result, call.change(() => {})]).catch(caught);
  }
  end();
};

export const insert = (body) => void messages.insert({ forum: "f", body, author: "a" });

/** Whether all rows are as their columns require. */
export const inspect = (last) => {
  const all = messages.list(50_000), others = marks.list(50_000);
  if (messages.newest(1)[0]?.body !== last) return `the last message is not ${last}`;
  const wrong = all.find((one) => typeof one.forum !== "string" || one.body.length > 1000 || Number.isNaN(Date.parse(one.at)));
  if (wrong !== undefined) return `a wrong message: ${JSON.stringify(wrong)}`;
  const bad = others.find((one) =>
    !["open", "closed"].includes(one.word) || (one.stars !== null && !(Math.abs(one.stars) <= 3)) ||
    (one.message !== null && messages.get(one.message) === null) || (one.raw !== null && one.raw.length > 10));
  return bad === undefined ? `${all.length + others.length}` : `a wrong mark: ${JSON.stringify(bad)}`;
};
