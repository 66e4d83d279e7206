/// <reference path="./globals.d.ts" />
/// <reference path="./start.d.ts" />
// The module `bine`: the words of an application in TSX.

import type { Addressed, Child, Markup, Trusted } from "./markup.d.ts";
import type { NodeKind, NodeTarget, Tree, TreeElement } from "./trees.d.ts";

export type { Child, Markup, Trusted };
export type {
  LeafKind, Nodes, NodeKind, NodeTarget, Place, Tree, TreeElement, TreeLeaf, TreeNode, TreeWriter,
} from "./trees.d.ts";

// Pages

/** The markup of a page, or an answer that is no page, such as `redirect("/")`. */
export type Content = Markup | Answer;

/** The parameters of a page: those of its path (`rooms/[id].tsx`) and of its query (`?q=hops`). */
export interface Parameters {
  readonly [name: string]: string | undefined;
}

/** A page: the default export of a file. */
export interface Page {
  readonly render: (ctx: Context, parameters: Parameters) => Content | Promise<Content>;
}

/**
 * Makes a page.
 *
 *     export default page((ctx, { name = "you" }) => <h1>Hello {name}</h1>);
 */
export function page(
  render: (ctx: Context, parameters: Parameters) => Content | Promise<Content>,
): Page;

/** What a page or a service knows about its request. */
export interface Context {
  /** The visitor who has logged in, or null. */
  readonly user: User | null;
  /** The session of the visitor. */
  readonly session: Session;
  /**
   * The browser tab. A page that reads it has an address with the name of its frame: a request
   * without one is redirected.
   */
  readonly frame: Frame;
  /**
   * The path and query of the page, or of the page that calls the service; null if no page calls it.
   */
  readonly path: string | null;
  /** The path of the application: empty at the root of the site, else as in `/board`. */
  readonly base: string;
  /**
   * The title that the page has set, or null: `ctx.title = item.name`. It replaces the `title` that
   * the file exports.
   */
  title: string | null;
  /** A header field of the request, or null. */
  header(name: string): string | null;
}

/** A visitor who has logged in. */
export interface User {
  readonly name: string;
}

/**
 * The session of a visitor. In a transaction, a change is a part of it and returns at once; elsewhere
 * it returns a promise. A page only reads.
 */
export interface Session {
  /** A generated name such as `Quiet Heron`, the same at each visit. Two visitors may share it. */
  readonly name: string;
  /** A stored value. */
  get<Value = any>(name: string): Value | undefined;
  /** Stores a value. All values of a session have at most 4096 bytes as JSON. */
  set(name: string, value: unknown): Done<void>;
  remove(name: string): Done<void>;
  /**
   * Logs in a user whom the application has verified. The session gets a new cookie. `brief`: until
   * the browser ends, or for a day without use.
   */
  logIn(user: string, options?: { readonly brief?: boolean }): Done<void>;
  /** Ends the session. */
  logOut(): Done<void>;
  /** All sessions of the user, the oldest first. */
  all(): SessionInfo[];
  /** Ends one of these sessions; false if the user has no such session. */
  revoke(id: string): Done<boolean>;
  /** Ends the other sessions of the user, and returns their number. */
  revokeOthers(): Done<number>;
  /** Ends all sessions of any user, and returns their number. */
  revokeUser(user: string): Done<number>;
}

/** The values of one browser tab. They last for half an hour without use. */
export interface Frame {
  /** A stored value. */
  get<Value = any>(name: string): Value | undefined;
  /** Stores a value. All values of a tab have at most 4096 bytes as JSON. */
  set(name: string, value: unknown): Done<void>;
  /** The address of a page that keeps the frame: `<a href={ctx.frame.to("/about")}>`. */
  to(address: string): string;
}

/** A result, or a promise of it outside of a transaction: `await` it in an `async` service. */
export type Done<Result> = Result | Promise<Result>;

/** A session of a user. */
export interface SessionInfo {
  readonly id: string;
  /** When it began. */
  readonly created: string;
  /** When it was last used, with a precision of an hour. */
  readonly lastUsed: string;
  /** Whether it is the session of this request. */
  readonly isCurrent: boolean;
}

/** The properties of the function in `_layout.tsx`. */
export interface LayoutProps {
  /** The page. */
  readonly children?: Child;
  /** The title that the page has set, the `title` that it exports, or else that of `app.toml`. */
  readonly title?: string;
  /** The path and query of the page. */
  readonly path?: string | null;
  /** The path of the application: empty at the root of the site, else as in `/board`. */
  readonly base?: string;
}

/** The properties of the function in `_error.tsx`. */
export interface ErrorProps {
  readonly status: number;
  /** The title of the status, such as `Not Found`. */
  readonly title: string;
  readonly message: string;
  /** The path of the application: empty at the root of the site, else as in `/board`. */
  readonly base: string;
}

/**
 * A region of a page that is always up to date: when data that it shows changes, the server renders
 * it again and sends it to every open page.
 */
export const Live: (properties: { children?: Child }) => Markup;

/** Marks a text as markup that is written without escapes. Never use it for text of visitors. */
export function raw(markup: string): Trusted;

// The browser

/**
 * Makes a function run in the browser, as one at `on..` of an element does, so that a component can
 * be given a handler: `<Row onpick={browser(() => remove({ id: row.id }))} />`.
 */
export function browser<Handler extends (event: any) => unknown>(handler: Handler): Handler;

/**
 * Shows another page, in a handler: as a link does, without loading the scripts of the page again.
 * Another site, and an address that is no page, are loaded by the browser.
 */
export function navigate(address: string): Promise<void>;

// Trees

/** Makes a tree of markup: `tree(<nav><a href="/">Home</a></nav>)`. */
export function tree(content: Child): Tree;

/** Makes a tree of one element whose name the program computes: ``element(`h${level}`, { id }, title)``. */
export function element(
  name: string,
  attributes?: { readonly [name: string]: unknown } | null,
  ...content: Child[]
): TreeElement;

/**
 * Makes a kind of node. Its function runs whenever a tree with such a node is written.
 *
 *     const Stars = node(({ count }: { count: number }) => <b>{"*".repeat(count)}</b>);
 */
export function node<Data = {}>(write: (data: Data, to: NodeTarget) => Child): NodeKind<Data>;

// Services

/** A function that forms, scripts and other programs call by its name: `<form action={post}>`. */
export interface Service<Argument, Result> extends Addressed {
  /** Calls it from another service, as a part of the same transaction. */
  (...argument: {} extends Argument ? [argument?: Argument] : [argument: Argument]): Result;
}

/**
 * Makes a service. Its changes of tables are one transaction, unless its function is `async`. The
 * type of the second parameter determines which arguments the server accepts.
 *
 *     export const post = service((ctx, { body }: { body: string }) => messages.insert({ body }));
 */
export function service<Result, Argument extends object = {}>(
  run: (ctx: Context, argument: Argument) => Result,
): Service<Argument, Result>;

/**
 * Changes tables in an `async` service: its function runs in a transaction, and again after a
 * conflict.
 */
export function change<Result>(run: () => Result): Promise<Result>;

/**
 * The position of the newest commit that this node of a cluster has applied, as a text for
 * `waitForPosition` on any node. After an awaited `change`, it is not before that change.
 */
export function position(): string;

/**
 * Waits until this node has applied a position, so that later reads see that commit. On one machine it
 * returns at once. If the node has not applied it within `timeout` milliseconds (5000 by default, at most
 * 30000), or is cut off, it throws, and the visitor gets a 503. In a transaction, make the service `async`.
 *
 *     await waitForPosition(after, { timeout: 2000 });
 */
export function waitForPosition(position: string, options?: { readonly timeout?: number }): Promise<void>;

declare const sealedFor: unique symbol;

/**
 * An argument of a service that must be sealed: the server accepts only what it has sealed itself, for
 * this argument and for the session of the visitor.
 *
 *     export const remove = service((ctx, { id }: { id: Sealed<string> }) => tasks.remove(id));
 */
export type Sealed<Value> = Value & { readonly [sealedFor]: Value };

type SealedArguments<Argument> = {
  readonly [Name in keyof Argument as NonNullable<Argument[Name]> extends {
    readonly [sealedFor]: unknown;
  }
    ? Name
    : never]?: NonNullable<Argument[Name]> extends { readonly [sealedFor]: infer Value } ? Value : never;
};

/**
 * Encrypts arguments of a service for the session of the visitor, who can neither read nor change
 * them, and can use them in this service only. Each has at most 4096 bytes as JSON. They are valid for
 * about a month.
 *
 *     const ticket = sealed(remove, { id: task.id });
 *     return <button onclick={() => remove(ticket)}>Remove</button>;
 */
export function sealed<Argument, Given extends SealedArguments<Argument>>(
  service: Service<Argument, any>,
  values: Given,
): { readonly [Name in keyof Given]: Name extends keyof Argument ? NonNullable<Argument[Name]> : never };

// Answers

declare const answer: unique symbol;

/** An answer that is no page. Return it or throw it. */
export interface Answer extends Error {
  readonly [answer]: true;
}

/** Sends the browser to another address. */
export function redirect(location: string): Answer;
/** There is no such page or row: status 404. */
export function notFound(message?: string): Answer;
/** An error with a status from 400 to 599 and a message for the visitor. */
export function error(status: number, message: string): Answer;

/**
 * Rejects a form, with a message at each of these fields: status 422. A message completes a sentence
 * that begins with the name of its field.
 *
 *     return invalid({ age: "must be at least 18" });
 */
export function invalid(fields: { readonly [name: string]: string | undefined }): Answer;

// Files of forms

/**
 * A file that a visitor sends, as an argument of a service. The form has
 * `enctype="multipart/form-data"`. Only the call that got it can read it.
 *
 *     export const add = service((ctx, { picture }: { picture: Upload }) => picture.size);
 */
export class Upload {
  private constructor();
  /** The last part of the file's name on the computer of the visitor. Show it, but save under another. */
  readonly name: string;
  /** The media type that the browser has sent: the visitor may send any. */
  readonly type: string;
  /** The number of bytes. */
  readonly size: number;
  bytes(): Uint8Array;
  /** The content as text in UTF-8. */
  text(): string;
  /**
   * Saves the file in the folder `public` of the application, from which it is served:
   * `save("pictures/1.png")`. Only in an `async` service; rejects a name that exists.
   */
  save(path: string): Promise<void>;
}

// Other servers

/** How other servers are called. */
export interface RemoteOptions {
  /** Sent with each call: `Authorization: Bearer ..`. */
  readonly token?: string | undefined;
  /** Milliseconds for a whole call, at most half of `await_ms` of the application and 20 seconds. */
  readonly timeout?: number | undefined;
  /** The certificates (PEM) by which the server is trusted, in place of those of the system. */
  readonly certificates?: string | undefined;
  /** Bytes of an answer; a mebibyte without it. */
  readonly maxResponse?: number | undefined;
}

/** The services of another server, each as a function that returns a promise. */
export type RemoteServices<Services> = {
  readonly [Name in keyof Services as Services[Name] extends (...given: any[]) => any
    ? Exclude<Name, "then">
    : never]: Services[Name] extends (...given: infer Given) => infer Result
    ? (...given: Given) => Promise<Awaited<Result>>
    : never;
};

/**
 * The services of another Bine server at an address. Only pages and `async` services call it.
 *
 *     const cellar = remote<{ heat(given: { degrees: number }): number }>("https://cellar.home/cellar");
 *     const degrees = await cellar.heat({ degrees: 21 });
 */
export function remote<Services = { [name: string]: (given?: object) => any }>(
  address: string | URL,
  options?: RemoteOptions,
): RemoteServices<Services>;

/** A call of another server that failed. An uncaught one is the answer, as it is in Rust. */
export class RemoteError extends Error {
  private constructor();
  readonly name: "RemoteError";
  /**
   * `refused`: the server has rejected the call. `unreached`: it has not seen the call, which may be
   * repeated. `unanswered` and `timedOut`: nobody knows whether it has carried out the call.
   * `misunderstood`: it has carried out the call, but its answer is too long or no JSON. `misused`: the
   * address or an argument is wrong.
   */
  readonly reason:
    | "refused"
    | "unreached"
    | "unanswered"
    | "timedOut"
    | "misunderstood"
    | "misused";
  /** The status of a refusal, or null. */
  readonly status: number | null;
}

/** Receives the events of one name that another server sends. */
export interface RemoteEvents<Event> {
  /** The next event; undefined if none comes within this number of milliseconds, 1000 without it. */
  next(milliseconds?: number): Promise<Event | undefined>;
  /** Ends the connection. */
  close(): void;
}

/** The events of another Bine server, from the first `next` on. */
export function remoteEvents<Event = any>(
  address: string | URL,
  event: string,
  options?: RemoteOptions,
): RemoteEvents<Event>;
// Channels

/** Who may follow a channel, or publish in it, besides the application. */
export type Audience = "anyone" | "users" | "nobody";

/** The settings of a channel. Times are in milliseconds. */
export interface ChannelSettings {
  /** `users`: those who have logged in. A segment `{user}` then stands for their own name. */
  readonly follow?: Audience;
  readonly publish?: Audience;
  /** Which messages it keeps: the newest within all limits. `null` lifts a limit. */
  readonly retention?: {
    /** 10 000 by default. */
    readonly messages?: number | null;
    /** 32 MiB by default. */
    readonly bytes?: number | null;
    /** Seven days by default. */
    readonly age?: number | null;
  };
  /** When the server removes the channel; never by default. */
  readonly expiry?:
    | { readonly afterPublish: number }
    | { readonly afterActivity: number }
    | { readonly at: Date | number }
    | null;
  /** When a publication is acknowledged. */
  readonly durability?: "memory" | "interval" | "commit";
}

/** A message of a channel. */
export interface Message {
  /** The position among all messages. */
  readonly cursor: string;
  readonly time: string;
  /** The media type. */
  readonly type: string;
  readonly event: string | null;
  readonly id: string | null;
  /** A string, a value of JSON, or a `Uint8Array`. */
  readonly data: any;
}

export interface MessageOptions {
  /** The name of the event, for browsers. */
  readonly event?: string | null | undefined;
  /** An id by which a repeated message is recognized for two minutes. */
  readonly id?: string | null | undefined;
  /** The media type. */
  readonly type?: string | null | undefined;
  /** Further channels of the message. */
  readonly also?: Channel | readonly Channel[];
}

/** The position of a published message, and whether its `id` was known. */
export interface Receipt {
  readonly cursor: string;
  readonly repeated: boolean;
}

declare const ofChannel: unique symbol;

/**
 * A channel: a named sequence of messages that browsers and programs follow. In a transaction, changes
 * happen after the commit, and return nothing; elsewhere they return a promise.
 */
export interface Channel {
  readonly [ofChannel]: true;
  /** The name for clients and for Rust, such as `board/news`. */
  readonly name: string;
  /** Publishes a string, bytes, or a value that becomes JSON. */
  publish(data: unknown, options?: MessageOptions): Promise<Receipt> | undefined;
  /** The newest messages, at most 1000 and 4 MiB of them, the newest first. */
  newest(limit: number): Message[];
  /** Its state; null: it does not exist. */
  describe(): {
    readonly messages: number;
    readonly bytes: number;
    readonly created: string;
    readonly expires: string | null;
    readonly isClosed: boolean;
  } | null;
  /** The address by which a browser follows it, from the messages on that the page shows. */
  url(): string;
  /**
   * In a handler: calls a function for each message from now on, in their order, until the returned
   * function is called.
   *
   *     onappear={() => news.follow((message) => show(message.data))}
   */
  follow(handler: (message: Message) => unknown, options?: FollowOptions): () => void;
  /** Creates it. A publication does so too. */
  create(): Promise<void> | undefined;
  /** Ends it: it accepts no more messages. */
  close(): Promise<void> | undefined;
  /** Postpones its expiry, as a publication does. */
  renew(): Promise<void> | undefined;
  /** Removes it with its messages. */
  remove(): Promise<void> | undefined;
}

/** How a handler follows a channel. */
export interface FollowOptions {
  /** Begins after the message with this cursor, or with the `"earliest"` one. */
  readonly after?: string | undefined;
  /** Called if messages may be missing, because the server has dropped some meanwhile. */
  readonly lost?: () => unknown;
}

/** The channels of a pattern such as `rooms/{room}`. */
export interface ChannelPattern {
  readonly [ofChannel]: false;
  /** The channel with these texts in the place of the segments in braces: `rooms.at("hops")`. */
  at(...values: string[]): Channel;
}

/**
 * Declares a channel of the application, or a pattern of channels.
 *
 *     const news = channel("news", { follow: "anyone" });
 *     const rooms = channel("rooms/{room}", { follow: "users" });
 */
export const channel: {
  <const Name extends string>(
    name: Name,
    settings?: ChannelSettings,
  ): Name extends `${string}{${string}` | `${string}*` ? ChannelPattern : Channel;
  /** The address by which a browser follows several channels in one stream. */
  url(...channels: Channel[]): string;
  /** Ends what a user was granted until now. */
  revoke(user: string): Promise<void> | undefined;
};

// Events, and who is present

declare const ofEvent: unique symbol;

/**
 * An event: a message to the open pages that listen at this moment, which is not stored. In a
 * transaction it is sent after the commit.
 */
export interface Event {
  readonly [ofEvent]: true;
  /** The name for clients and for Rust, such as `board/bell`: `on("board/bell", ..)`. */
  readonly name: string;
  /** Sends it to all listeners. */
  broadcast(data?: unknown): void;
  /** Sends it to one listener, each in turn; false if there is none. In a transaction, undefined. */
  notifyOne(data?: unknown): boolean | undefined;
  /** The number of listeners. A live region that shows it is always up to date. */
  listeners(): number;
  /**
   * In a handler: calls a function with the data of each such event, until the returned function is
   * called.
   *
   *     onappear={() => bell.on(() => new Audio("/bell.mp3").play())}
   */
  on(handler: (data: any) => unknown): () => void;
}

/**
 * Declares an event of the application.
 *
 *     const bell = event("bell");
 *     const job = event("job", { listen: "users" });
 */
export function event(name: string, options?: { readonly listen: "anyone" | "users" }): Event;

/** The visitors who have the page open, for pages. A live region that shows them is up to date. */
export const presence: {
  /** The number of people: all tabs of a user are one person. */
  people(): number;
  /** The number of tabs. */
  tabs(): number;
  /** At most `most` names, each once. */
  names(most: number): string[];
};

// Tables

declare const column: unique symbol;

/** A column of a table. */
export interface Column<Read, Write, MayBeOmitted extends boolean> {
  readonly [column]: { read: Read; write: Write; mayBeOmitted: MayBeOmitted };
}

type Kind = "text" | "bytes" | "number" | "reference" | "other";

type ColumnOf<Read, Write, MayBeOmitted extends boolean, Of extends Kind> =
  & Column<Read, Write, MayBeOmitted>
  & Modifiers<Read, Write, MayBeOmitted, Of>
  & (Of extends "text" | "bytes" | "number" ? Bounds<Read, Write, MayBeOmitted, Of> : {})
  & (Of extends "reference" ? Reference<Read, Write, MayBeOmitted, Of> : {});

interface Modifiers<Read, Write, MayBeOmitted extends boolean, Of extends Kind> {
  /** Finds rows by this column quickly. */
  index(): ColumnOf<Read, Write, MayBeOmitted, Of>;
  /** The same, and no two rows have equal values. */
  unique(): ColumnOf<Read, Write, MayBeOmitted, Of>;
  /** A row may have no value, `null`. */
  optional(): ColumnOf<Read | null, Write | null, true, Of>;
  private(): ColumnOf<Read, Write, MayBeOmitted, Of>;
  /** The value of rows that are inserted without one, and of rows older than the column. */
  default(value: Write): ColumnOf<Read, Write, true, Of>;
  /** The name of the column in messages for visitors. */
  label(text: string): ColumnOf<Read, Write, MayBeOmitted, Of>;
  /** The previous name of the column. */
  was(name: string): ColumnOf<Read, Write, MayBeOmitted, Of>;
}

interface Bounds<Read, Write, MayBeOmitted extends boolean, Of extends Kind> {
  /** The least number, or the least length in characters or bytes. */
  min(least: number): ColumnOf<Read, Write, MayBeOmitted, Of>;
  /** The greatest number, or the greatest length in characters or bytes. */
  max(most: number): ColumnOf<Read, Write, MayBeOmitted, Of>;
}

interface Reference<Read, Write, MayBeOmitted extends boolean, Of extends Kind> {
  /** What the removal of the other row does to this row. Without it, the removal is rejected. */
  onRemove(effect: "reject" | "remove" | "null"): ColumnOf<Read, Write, MayBeOmitted, Of>;
}

/** A text. */
export function text(): ColumnOf<string, string, false, "text">;
/** A number, with or without a fraction. */
export function number(): ColumnOf<number, number, false, "number">;
/** A whole number. */
export function integer(): ColumnOf<number, number, false, "number">;
/** `true` or `false`. */
export function boolean(): ColumnOf<boolean, boolean, false, "other">;
/** Bytes. */
export function bytes(): ColumnOf<Uint8Array, Uint8Array, false, "bytes">;
/** A moment. A row has it as text in UTC; a `Date` or the number of `Date.now()` can be stored. */
export function time(): ColumnOf<string, string | number | Date, false, "other">;
/** A moment that is the time of the insertion unless the row gives one. */
export function now(): ColumnOf<string, string | number | Date, true, "other">;
/** One of these words. */
export function choice<const Word extends string>(
  ...words: Word[]
): ColumnOf<Word, Word, false, "other">;
/** The `id` of a row of another table, or of the table with this name. */
export function ref(to: Table<any> | string): ColumnOf<string, string, false, "reference">;

export interface Columns {
  readonly [name: string]: Column<any, any, boolean>;
}

type ReadOf<C> = C extends Column<infer Read, any, boolean> ? Read : never;
type WriteOf<C> = C extends Column<any, infer Write, boolean> ? Write : never;
type Flat<T> = { [Name in keyof T]: T[Name] };
type Omittable<C extends Columns> = {
  [Name in keyof C]: C[Name] extends Column<any, any, true> ? Name : never;
}[keyof C];
type Numbers<C extends Columns> = {
  [Name in keyof C]: ReadOf<C[Name]> extends number | null ? Name : never;
}[keyof C] & string;

/** A row: its columns and its `id`. */
export type Row<C extends Columns> = Flat<
  { readonly id: string } & { readonly [Name in keyof C]: ReadOf<C[Name]> }
>;
/** The values of a new row. */
export type NewRow<C extends Columns> = Flat<
  & { readonly [Name in Exclude<keyof C, Omittable<C>>]: WriteOf<C[Name]> }
  & { readonly [Name in Omittable<C>]?: WriteOf<C[Name]> | undefined }
>;
/** The row of a table: `RowOf<typeof messages>`. */
export type RowOf<T> = T extends Table<infer C> ? Row<C> : never;

/** A part of the rows of a query, and the places where the pages before and after it begin. */
export interface RowPage<C extends Columns> {
  readonly rows: Row<C>[];
  readonly previous: string | null;
  readonly next: string | null;
}

/** A value, or a range: `from` and `to` belong to it, `after` and `before` do not. */
export type Wanted<Value> =
  | Value
  | {
      readonly from?: NonNullable<Value>;
      readonly to?: NonNullable<Value>;
      readonly after?: NonNullable<Value>;
      readonly before?: NonNullable<Value>;
    };

/** Rows of a table that satisfy conditions, in an order. It reads when a result is asked for. */
export interface Query<C extends Columns> extends Iterable<Row<C>> {
  /** Only rows with this value in a column, or with a value in this range. */
  by<Name extends keyof C & string>(column: Name, value: Wanted<WriteOf<C[Name]>>): Query<C>;
  /** Only rows with these values. */
  where(conditions: { readonly [Name in keyof C]?: Wanted<WriteOf<C[Name]>> }): Query<C>;
  /** Without it, rows are in the order in which they were inserted. */
  orderBy(column: keyof C & string, direction?: "ascending" | "descending"): Query<C>;
  /** The newest rows, the newest first. */
  newest(limit: number): Row<C>[];
  /** The oldest rows, the oldest first. */
  oldest(limit: number): Row<C>[];
  /** The first rows in the order of the query. */
  list(limit: number): Row<C>[];
  /** All rows in the order of the query. */
  all(): Row<C>[];
  /** The same as `all().map(..)`. */
  map<Result>(each: (row: Row<C>, index: number) => Result): Result[];
  /** The first row, or null. */
  first(): Row<C> | null;
  count(): number;
  sum(column: Numbers<C>): number;
  /** `null` if no row has a value; the same holds for `min` and `max`. */
  average(column: Numbers<C>): number | null;
  min<Name extends keyof C & string>(column: Name): ReadOf<C[Name]> | null;
  max<Name extends keyof C & string>(column: Name): ReadOf<C[Name]> | null;
  /** The rows by the values of a column: `groupBy("forum").count()`. */
  groupBy<Name extends keyof C & string>(column: Name): Groups<C, ReadOf<C[Name]>>;
  /** One page of the rows: `page({ size: 20, after, before })`, with parameters of the page. */
  page(options: {
    readonly size: number;
    readonly after?: string | null | undefined;
    readonly before?: string | null | undefined;
  }): RowPage<C>;
  /** The columns of the index that serves the query, whether rows are sorted, and their numbers. */
  explain(): {
    readonly index: string[] | null;
    readonly isSorted: boolean;
    readonly examined: number;
    readonly returned: number;
  };
}

/** The rows of a query by the values of a column. A result has a pair for each value, in their order. */
export interface Groups<C extends Columns, Value> {
  count(): [Value, number][];
  sum(column: Numbers<C>): [Value, number][];
  average(column: Numbers<C>): [Value, number | null][];
  min<Name extends keyof C & string>(column: Name): [Value, ReadOf<C[Name]> | null][];
  max<Name extends keyof C & string>(column: Name): [Value, ReadOf<C[Name]> | null][];
}

/** A table, which is the query for all of its rows. Only services change it. */
export interface Table<C extends Columns> extends Query<C> {
  /** The row with this `id`, or null. */
  get(id: string): Row<C> | null;
  /** Adds a row and returns its `id`. */
  insert(values: NewRow<C>): string;
  /** Adds rows and returns their `id`s. */
  insertAll(rows: readonly NewRow<C>[]): string[];
  /** Changes columns of the row with this `id`. */
  update(id: string, values: { readonly [Name in keyof C]?: WriteOf<C[Name]> }): void;
  /** Removes a row; false if there is none. */
  remove(id: string): boolean;
}

/**
 * Declares a table of the application.
 *
 *     const messages = table("messages", { body: text().max(500), at: now() });
 */
export function table<const C extends Columns & { readonly id?: never }>(
  name: string,
  columns: C,
  options?: {
    /** Indexes of several columns: `[["forum", "at"]]`. */
    readonly indexes?: readonly (readonly (keyof C & string)[])[];
    /** The same, and no two rows have equal values. */
    readonly unique?: readonly (readonly (keyof C & string)[])[];
    /** Columns of earlier versions whose values are deleted. */
    readonly dropped?: readonly string[];
  },
): Table<C>;

/** A change of tables that failed, or a place of a page that does not exist. */
export class TableError extends Error {
  private constructor();
  readonly name: "TableError";
  readonly reason:
    | "invalid"
    | "duplicate"
    | "missing"
    | "referenced"
    | "conflict"
    | "large"
    | "unavailable"
    | "cursor";
  /** The columns with invalid values. */
  readonly errors: readonly { readonly column: string; readonly message: string }[];
}
