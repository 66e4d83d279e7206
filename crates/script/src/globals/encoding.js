(function (native) {
  "use strict";
  const { encode, decode, atob, btoa } = native;
  const labels = ["utf-8", "utf8", "unicode-1-1-utf-8"];
  class TextEncoder {
    get encoding() {
      return "utf-8";
    }
    encode(text = "") {
      return encode(`${text}`);
    }
    encodeInto(text, target) {
      let read = 0;
      let written = 0;
      for (const character of `${text}`) {
        const bytes = encode(character);
        if (written + bytes.length > target.length) break;
        target.set(bytes, written);
        written += bytes.length;
        read += character.length;
      }
      return { read, written };
    }
  }
  class TextDecoder {
    #fatal;
    #keepsMark;
    constructor(label = "utf-8", { fatal = false, ignoreBOM = false } = {}) {
      if (!labels.includes(`${label}`.trim().toLowerCase())) {
        throw new RangeError(`TextDecoder knows utf-8 only, not ${label}`);
      }
      this.#fatal = !!fatal;
      this.#keepsMark = !!ignoreBOM;
    }
    get encoding() {
      return "utf-8";
    }
    get fatal() {
      return this.#fatal;
    }
    get ignoreBOM() {
      return this.#keepsMark;
    }
    decode(input, options) {
      if (options?.stream) throw new TypeError("TextDecoder decodes whole texts only");
      if (input === undefined) return "";
      const bytes = ArrayBuffer.isView(input)
        ? new Uint8Array(input.buffer, input.byteOffset, input.byteLength)
        : new Uint8Array(input);
      return decode(bytes, this.#fatal, this.#keepsMark);
    }
  }
  const invalid = (message) => new DOMException(message, "InvalidCharacterError");
  return {
    TextEncoder,
    TextDecoder,
    atob(text) {
      const bytes = atob(`${text}`);
      if (bytes === null) throw invalid("atob() takes base64");
      let out = "";
      for (let index = 0; index < bytes.length; index++) out += String.fromCharCode(bytes[index]);
      return out;
    },
    btoa(text) {
      const encoded = btoa(`${text}`);
      if (encoded === null) throw invalid("btoa() takes characters up to U+00FF");
      return encoded;
    },
  };
})
