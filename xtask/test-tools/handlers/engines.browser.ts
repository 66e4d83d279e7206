// Pure functions that must have the same results in the engine of the server and in browsers.

/** What a test generates. */
interface Input {
  text: string;
  number: number;
  integer: number;
  time: number;
  list: string[];
}

const EMAIL = /^[\p{L}\p{N}._%+-]+@(?:[\p{L}\p{N}-]+\.)+\p{L}{2,}$/u;
const PRICE = /^(?<sign>[+-]?)(?<whole>\d{1,3}(?:[ ,]\d{3})*|\d+)(?:\.(?<cents>\d{2}))?$/;

/** Each function as its claim is named. */
const FUNCTIONS: { [name: string]: (input: Input) => unknown } = {
  validation: ({ text, list }) => [
    EMAIL.test(text),
    EMAIL.test(list.join("@")),
    PRICE.exec(text)?.groups ?? null,
    /^\p{Lu}/u.test(text),
    text.match(/\p{Script=Greek}+|\p{Script=Cyrillic}+/gu),
    text.search(/(?<=\s)\S/u),
    /[\p{L}--[a-z]]/v.test(text),
    /stra\u00dfe|\ufb01|\u03a3/iu.test(text),
    text.trim() === "" ? "Write a title." : text.length > 20 ? `${text.length - 20} too many.` : null,
  ],

  replacement: ({ text, list }) => [
    text.replace(/(?<first>\S+)\s+(?<second>\S+)/u, "$<second> $<first> $& $$ $`"),
    text.replaceAll(list[0] ?? "a", (found, at) => `[${found}:${at}]`),
    text.split(/(\s)/u),
    [...text.matchAll(/(.)\1/gsu)].map((one) => [one[0], one.index]),
  ],

  formatting: ({ number, integer }) => [
    String(number),
    number.toFixed(2),
    number.toFixed(0),
    number.toPrecision(7),
    number.toExponential(3),
    Math.round(number * 100) / 100,
    integer.toString(2),
    integer.toString(36),
    (integer / 100).toFixed(2).padStart(12, "."),
    String(integer).replace(/\B(?=(\d{3})+$)/g, ","),
  ],

  parsing: ({ text, number, list }) => [
    Number(text),
    parseFloat(text),
    parseInt(text, 10),
    Number(String(number)) === number,
    list.map(Number),
    list.map((one) => parseInt(one, 16)),
  ].map(String),

  arithmetic: ({ number, integer }) => [
    Math.trunc(number), Math.floor(number), Math.ceil(number), Math.round(number), Math.sign(number), Math.sqrt(Math.abs(number)),
    Math.fround(number), number % 7, -number % 3, number * 1.1, number / 3, integer * integer, Math.max(number, integer, -0), Math.min(number, integer, 0),
  ].map((one) => Object.is(one, -0) ? "-0" : String(one)),

  approximation: ({ number, integer }) => [
    Math.hypot(integer, 4), integer ** 2, Math.abs(number) ** 0.3, Math.sin(integer % 1000), Math.cos(number % 10), Math.tan(integer % 100),
    Math.exp(integer % 100), Math.log(Math.abs(number) + 1), Math.log10(Math.abs(integer)), Math.log2(Math.abs(integer)), Math.cbrt(number),
    Math.atan2(integer, 3), Math.tanh(number % 5), Math.asinh(integer % 1000),
  ],

  bits: ({ integer, number }) => [
    integer | 0, integer >>> 0, integer << 5, integer >> 3, integer >>> 3, integer & 0xff, integer ^ 0x5555, ~integer,
    number | 0, number >>> 0, Math.imul(integer, 0x9e3779b1), Math.clz32(integer), integer & -integer,
    BigInt.asUintN(64, BigInt(integer) * 6364136223846793005n).toString(16), (BigInt(integer) ** 3n).toString(),
    (BigInt(integer) / 7n).toString(), BigInt.asIntN(16, BigInt(integer)).toString(),
    new Int16Array([integer])[0], new Uint8ClampedArray([number])[0],
  ].map(String),

  sorting: ({ list, text, number, integer }) => [
    [...list].sort(),
    list.toSorted((a, b) => a.length - b.length),
    list.toSorted((a, b) => (a < b ? 1 : a > b ? -1 : 0)),
    [number, integer, list.length, text.length, 10, 9].sort(),
    [...text].sort(),
    Object.keys(Object.fromEntries([...list, "7", "3", String(integer)].map((one) => [one, 1]))),
    [...new Set([...text])],
  ],

  // Firefox also replaces halves of characters here.
  normalization: ({ text }) => ["NFC", "NFD", "NFKC", "NFKD"].map((form) => text.toWellFormed().normalize(form)),

  letters: ({ text }) => [
    text.toUpperCase(), text.toLowerCase(), text.trim(), text.length, [...text].length, text.isWellFormed(), text.toWellFormed(),
    text.at(-1) ?? null, text.codePointAt(0) ?? null, text.slice(-3), text.padEnd(5, "\u00e9"), text.indexOf("a"), text.at(0)?.repeat(3) ?? null,
  ],

  time: ({ time, integer }) => {
    const date = new Date(time);
    const later = new Date(time);
    later.setUTCMonth(date.getUTCMonth() + (integer % 25), 31);
    return [
      date.toISOString(), later.toISOString(), date.getUTCDay(), Date.parse(date.toISOString()) === time,
      Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1, 0, 24, -integer % 1000),
      Math.floor((Date.UTC(date.getUTCFullYear(), 11, 31) - time) / 86_400_000), date.toUTCString(),
      new Date(8.64e15 + integer).getTime(), Date.parse(`${date.toISOString().slice(0, 10)}T12:30:00+02:00`),
    ].map(String);
  },

  json: (input) => [
    JSON.stringify(JSON.parse(JSON.stringify(input))) === JSON.stringify(input),
    JSON.stringify(input, ["text", "number"], 2),
    JSON.stringify({ [input.text]: -0, none: undefined, list: [undefined, NaN, input.number], time: new Date(input.time) }),
    [...encodeURIComponent(input.text.toWellFormed())].length,
    decodeURIComponent(encodeURIComponent(input.text.toWellFormed())) === input.text.toWellFormed(),
    structuredClone({ list: new Map([[input.text, input.list]]) }).list.get(input.text)?.length,
    [...new TextEncoder().encode(input.text)].reduce((sum, byte) => (sum * 31 + byte) >>> 0, 7),
    new URLSearchParams({ text: input.text }).toString(),
  ],
};

/** The results of all functions for some inputs: `{ name: result }` for each. */
export const results = (inputs: string): string =>
  JSON.stringify((JSON.parse(inputs) as Input[]).map((input) =>
    Object.fromEntries(Object.entries(FUNCTIONS).map(([name, compute]) => {
      try {
        return [name, JSON.stringify(compute(input))];
      } catch (error) {
        return [name, `${(error as Error).name}`];
      }
    }))));

/** How many results two engines have, and which are different texts: the number of the input, the name of the function, and both. */
export const compare = (one: string, other: string): string => {
  const [results, others]: { [name: string]: string }[][] = [JSON.parse(one), JSON.parse(other)];
  const differences = results!.flatMap((result, index) =>
    Object.keys(result)
      .filter((name) => result[name] !== others![index]?.[name])
      .map((name) => [index, name, result[name], others![index]?.[name]]));
  return JSON.stringify({ counts: [results!.length, others!.length], differences });
};

/** What is known to differ, in JSON. */
export const differences = (): string =>
  JSON.stringify({
    international: typeof Intl,
    number: (1234.5).toLocaleString("de-DE"),
    order: ["z", "\u00e4"].sort((a, b) => a.localeCompare(b, "de")).join(" "),
    half: "\ud800".normalize(),
  });
