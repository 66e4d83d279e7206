//! Global names: console, URL, text and bytes, random numbers, clones, timers, abort signals.

use crate::support::script;

/// The text of an expression, or its exception.
fn check(expression: &str, expected: &str) {
    let script = script(&format!(
        "export const f = async () => {{ try {{ return `${{await ({expression})}}` }} catch (e) {{ return `${{e.name}}: ${{e.message}}` }} }};"
    ));
    assert_eq!(script.text("f"), expected, "{expression}");
    script.close();
}

#[test]
fn urls_follow_the_standard() {
    check(
        "new URL('../b?x=1#y', 'https://user:pw@Ex\\u00e4mple.org:444/a/c').href",
        "https://user:pw@xn--exmple-cua.org:444/b?x=1#y",
    );
    check("new URL('http://a').pathname", "/");
    check("new URL('relative')", "TypeError: Invalid URL: relative");
    check("URL.canParse('x:') + ' ' + URL.canParse('//')", "true false");
    check(
        "(() => { const u = new URL('https://a.b/c'); u.searchParams.append('q', 'x y&z'); u.hash = 'h'; u.port = '8080'; u.protocol = 'mailto'; return u })()",
        "https://a.b:8080/c?q=x+y%26z#h",
    );
    check(
        "(() => { const u = new URL('https://a/?x=1'); const p = u.searchParams; u.search = '?y=2'; return p })()",
        "y=2",
    );
    check(
        "JSON.stringify([...new URLSearchParams('a=1&b=%20+%F0%9F%98%80&a=2')])",
        "[[\"a\",\"1\"],[\"b\",\"  \u{1f600}\"],[\"a\",\"2\"]]",
    );
    check(
        "(() => { const p = new URLSearchParams({ b: 1, a: 2 }); p.append('b', 3); p.set('b', 4); p.sort(); p.delete('none'); return p + ' ' + p.getAll('b') + ' ' + p.size + p.has('a') })()",
        "a=2&b=4 4 2true",
    );
    check("new URLSearchParams([['a']])", "TypeError: a pair is expected");
}

#[test]
fn text_and_bytes_convert() {
    check("new TextEncoder().encode('a\\u00e9\\u{1f600}')", "97,195,169,240,159,152,128");
    // Each half of a surrogate pair became three U+FFFD, and one in browsers.
    check("new TextEncoder().encode('\\ud800a\\udfff')", "239,191,189,97,239,191,189");
    check("`${new URLSearchParams({ a: '\\udfff\\udfff' })}`", "a=%EF%BF%BD%EF%BF%BD");
    check("new TextDecoder().decode(new Uint8Array([0xef, 0xbb, 0xbf, 97, 255]))", "a\u{fffd}");
    check(
        "new TextDecoder('utf-8', { fatal: true }).decode(new Uint8Array([255]))",
        "TypeError: the bytes are not UTF-8",
    );
    check("new TextDecoder('latin1')", "RangeError: TextDecoder knows utf-8 only, not latin1");
    check(
        "JSON.stringify(new TextEncoder().encodeInto('a\\u00e9b', new Uint8Array(2)))",
        "{\"read\":1,\"written\":1}",
    );
    check("btoa('\\xff\\x00a') + atob(' /wBh ').length", "/wBh3");
    check("btoa('\\u0100')", "InvalidCharacterError: btoa() takes characters up to U+00FF");
    check("atob('a')", "InvalidCharacterError: atob() takes base64");
}

#[test]
fn random_numbers_are_those_of_the_host() {
    check("crypto.randomUUID()", "00010203-0405-4607-8809-0a0b0c0d0e0f");
    check("crypto.getRandomValues(new Uint16Array(2))", "256,770");
    check(
        "crypto.getRandomValues(new Uint8Array(65_537))",
        "RangeError: getRandomValues() fills at most 65536 bytes",
    );
    check(
        "crypto.getRandomValues(new Float64Array(1))",
        "TypeError: getRandomValues() takes an array of integers",
    );
    check("crypto.getRandomValues({})", "TypeError: getRandomValues() takes an array of integers");
}

#[test]
fn clones_are_deep() {
    check(
        "(() => { const a = { d: new Date(5), m: new Map([[1, { x: [1] }]]), s: new Set([1]), r: /x/g, b: new Uint8Array([1, 2]), n: null }; a.self = a; const b = structuredClone(a); b.m.get(1).x.push(2); return [b.self === b, b.d.getTime(), a.m.get(1).x, b.s.has(1), b.r.flags, b.b, b.b.buffer !== a.b.buffer].join(' ') })()",
        "true 5 1 true g 1,2 true",
    );
    check("structuredClone(new RangeError('x', { cause: 1 })) instanceof RangeError", "true");
    check("structuredClone({ f() {} })", "DataCloneError: a function cannot be cloned");
    check("structuredClone(JSON.parse('{\"__proto__\": {\"x\": 1}}')).x", "undefined");
    check("structuredClone(new Promise(() => {}))", "DataCloneError: Promise cannot be cloned");
}

#[test]
fn abort_signals_abort() {
    check(
        "(() => { const c = new AbortController(); let seen = ''; c.signal.addEventListener('abort', (e) => seen += e.type + e.target.aborted); c.abort(); c.abort(); return seen + c.signal.reason.name })()",
        "aborttrueAbortError",
    );
    check(
        "new Promise((r) => { const s = AbortSignal.any([AbortSignal.timeout(5), new AbortController().signal]); s.onabort = () => r(s.reason.name) })",
        "TimeoutError",
    );
    check("AbortSignal.abort('why').throwIfAborted()", "undefined: undefined");
}

#[test]
fn the_console_writes_to_the_log() {
    let script = script(
        "export const f = () => {
           const cycle = { name: 'c', get secret() { throw 1 } }; cycle.self = cycle;
           console.log('text', 1, -0, null, undefined, true, [1, 'x', , [2]], cycle);
           console.warn(new TypeError('bad')); console.error(Symbol(), () => 1, 1n);
           console.debug(new Proxy({}, { ownKeys() { throw 1 } }), new Map()); console.info();
           console.log('x'.repeat(100_000).length, new Array(1000).fill(0));
         };",
    );
    script.call("f", &[]).unwrap();
    let log = script.log.borrow();
    assert_eq!(log[0], "Info: text 1 -0 null undefined true [1, \"x\", [hole], [2]] { name: c, secret: [getter], self: { name: c, secret: [getter], self: { name: c, secret: [getter], self: { name: c, secret: [getter], self: {...} } } } }".replace("name: c", "name: \"c\""));
    assert!(log[1].starts_with("Warning: TypeError: bad\n    at f (index.js:4:"), "{}", log[1]);
    assert_eq!(log[2], "Error: [symbol] [function] [bigint]");
    assert_eq!(log[3], "Debug: [proxy] { }");
    assert_eq!(log[4], "Info: ");
    assert!(log[5].len() < 1000, "{}", log[5].len());
}

#[test]
fn other_globals_are_absent() {
    check(
        "[typeof fetch, typeof require, typeof process, typeof Deno, typeof std, typeof os, typeof print, typeof Worker].join()",
        "undefined,undefined,undefined,undefined,undefined,undefined,undefined,undefined",
    );
    check("performance.now() >= 0", "true");
    check("setTimeout('text')", "TypeError: a timer needs a function");
    check("new Promise((r) => queueMicrotask(() => r('micro')))", "micro");
}
