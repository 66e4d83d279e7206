// Channels: named, ordered sequences of messages, which browsers and programs follow.
import { answer } from "bine:internal/answers";
import { isChanging } from "bine:internal/call";
import { declare, describe, later, nameOf, newest, now, url } from "bine:internal/channels-host";

/** In a transaction, the work runs after the commit; elsewhere there is a promise of its result. */
function run(...work) {
  if (!isChanging()) return now(...work).then((outcome) => answer(outcome) ?? undefined);
  answer(later(...work));
}

/** A string and bytes are the message; any other value becomes JSON. */
function bodyOf(data, type) {
  if (data instanceof Uint8Array) return data;
  if (typeof data === "string" && !`${type ?? ""}`.startsWith("application/json")) return data;
  const json = JSON.stringify(data);
  if (json === undefined) {
    throw new TypeError(
      `a message is a string, bytes, or a value that JSON can hold, not ${data === undefined ? "undefined" : `a ${typeof data}`}`,
    );
  }
  return { json };
}

function shown({ isJson, data, ...message }) {
  return Object.freeze({ ...message, data: isJson ? JSON.parse(data) : data });
}

/** A channel of the application. */
class Channel {
  #slot;
  #values;

  constructor(slot, values) {
    this.#slot = slot;
    this.#values = values;
    Object.freeze(this);
  }

  static placeOf(channel) {
    if (typeof channel !== "object" || channel === null || !(#slot in channel)) {
      throw new TypeError("this is no channel: write channel(\"news\"), or rooms.at(\"hops\") for one of a pattern");
    }
    return [channel.#slot, channel.#values];
  }

  get name() {
    return answer(nameOf(this.#slot, this.#values));
  }

  publish(data, options) {
    if (options !== undefined && (typeof options !== "object" || options === null)) {
      throw new TypeError("the options of a message are an object, such as { event: \"sold\" }");
    }
    const { also = [], ...others } = options ?? {};
    const channels = [this, ...(Array.isArray(also) ? also : [also])].map(Channel.placeOf);
    return run("publish", channels, bodyOf(data, others.type), others);
  }

  newest(limit) {
    return answer(newest(this.#slot, this.#values, limit)).map(shown);
  }

  describe() {
    return answer(describe(this.#slot, this.#values));
  }

  url() {
    return answer(url([[this.#slot, this.#values]]));
  }

  /** Handlers in the browser have the real one. */
  follow() {
    throw new TypeError("`follow` of a channel works in handlers of the browser: onappear={() => news.follow(..)}");
  }

  create() { return run("create", [[this.#slot, this.#values]]); }
  close() { return run("close", [[this.#slot, this.#values]]); }
  renew() { return run("renew", [[this.#slot, this.#values]]); }
  remove() { return run("remove", [[this.#slot, this.#values]]); }
}

/** The channels of a pattern. */
class ChannelPattern {
  #slot;

  constructor(slot) {
    this.#slot = slot;
    Object.freeze(this);
  }

  /** The channel with these values in the place of the segments in braces. */
  at(...values) {
    for (const value of values) {
      if (typeof value !== "string") {
        throw new TypeError(`the name of a channel is made of strings, not of ${value === null ? "null" : `a ${typeof value}`}`);
      }
    }
    return new Channel(this.#slot, values);
  }
}

export function channel(name, settings) {
  const expiry = settings?.expiry;
  if (expiry?.at instanceof Date) settings = { ...settings, expiry: { ...expiry, at: expiry.at.getTime() } };
  const { slot, isPattern } = declare(name, settings ?? null);
  return isPattern ? new ChannelPattern(slot) : new Channel(slot, []);
}

/** The address by which a browser follows several channels in one stream. */
channel.url = (...channels) => answer(url(channels.map(Channel.placeOf)));
/** Ends what a user was granted until now. */
channel.revoke = (user) => run("revoke", user);
Object.freeze(channel);
