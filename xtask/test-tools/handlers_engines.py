"""Checks that pure functions have the same results in the engine of the server and in a browser."""

import functools
import json
import random
import struct
import unicodedata

from handlers_page import Page

SEED = 23
INPUTS = 10_000
BATCH = 500
# Some units in the last of the 53 bits of a number.
CLOSE = 2e-15
# The functions of `engines.browser.ts` that have exact results.
FUNCTIONS = {
    "validation": "regular expressions, with Unicode",
    "replacement": "replacement and splitting",
    "formatting": "the formatting and rounding of numbers",
    "parsing": "the parsing of numbers",
    "arithmetic": "arithmetic",
    "bits": "operations on bits, and large integers",
    "sorting": "sorting, and the order of keys",
    "normalization": "the normalization of texts",
    "letters": "upper and lower case, and parts of texts",
    "time": "dates in UTC",
    "json": "JSON, and the encodings of texts",
}
WORDS = [
    "a@example.org", "ann.lee+news@mail.example.com", "\u00e4@ex\u00e4mple.org", "no@dot", "1 234.50", "+12,345", "-7.5", "1e3", "0x1F", "0b101",
    " 12 ", "12px", "Infinity", "-Infinity", "NaN", ".5", "5.", "1_000", "\u0663\u0664", "Stra\u00dfe", "\u038c\u0394\u039f\u03a3 \u03a3\u038a\u03a3\u03a5\u03a6\u039f\u03a3", "\u0130stanbul \u0131", "\ufb01nal \ufb02ow",
    "\u0149 \u01f0 \u0390 \u03b0 \u1fb3 \u1fbc \u1e9e", "e\u0301 \u00e9", "\u1e9b\u0323", "\uac00 \u1100\u1161", "\u65e5\u672c\u8a9e", "\u041c\u043e\u0441\u043a\u0432\u0430 \u043d\u043e\u0447\u044c\u044e", "\U0001f469\u200d\U0001f680 \U0001f1e9\U0001f1ea", "\u0085 \ufeff\u2028x", "\u180e\u00a0y\u3000",
    "Kelvin \u212a, \u017f", "$1 $& $$ ${x}", "\\u0041\\n\"'", "__proto__", "toString", "1", "10", "2", "4294967294", "4294967295", "-0", "\ud800", "a\udc00b", "\ud83d\ude42\ud83d",
]
NUMBERS = [0.0, -0.0, 0.1, 0.5, -0.5, 1.5, 2.5, 1.005, 1.255, 8.345, 10.235, 0.000001, 1e-7, 1e21, 123456789012345680000.0, 5e-324, 1.7976931348623157e308, 2.0**31, 2.0**32, -(2.0**31), 2.0**53, 0.49999999999999994]


class Engines(Page):
    def checks(self):
        exact = [
            (f"the server and the browser have the same results of {subject}", functools.partial(self.has_the_same_results, name))
            for name, subject in FUNCTIONS.items()
        ]
        return [
            *exact,
            ("functions of Math that the language does not define exactly differ in the last digits at most", self.approximations_are_close),
            ("other differences between the server and the browser are those of the manual", self.other_differences_are_known),
        ]

    def has_the_same_results(self, name):
        inputs, differences = self.compare()
        found = [(inputs[index], server, browser) for index, function, server, browser in differences if function == name]
        listed = "; ".join(f"{ascii(given)}: {first_difference(server, browser)}" for given, server, browser in found[:20])
        assert not found, f"{len(found)} of {INPUTS} with seed {SEED}: {listed}"
        return f"{INPUTS} inputs, seed {SEED}"

    def approximations_are_close(self):
        inputs, differences = self.compare()
        found = [(index, json.loads(server), json.loads(browser)) for index, name, server, browser in differences if name == "approximation"]
        worst = 0
        for index, server, browser in found:
            for one, other in zip(server, browser, strict=True):
                if one == other:
                    continue
                assert one is not None and other is not None, (ascii(inputs[index]), server, browser)
                distance = abs(one - other) / max(abs(one), abs(other))
                assert distance < CLOSE, (ascii(inputs[index]), one, other)
                worst = max(worst, distance)
        return f"{len(found)} of {INPUTS} inputs, by {worst:.1e} of the value at most"

    def other_differences_are_known(self):
        self.browser.get(self.server.url("/engines"))
        browser = json.loads(self.output_of("#differ"))
        server = json.loads(json.loads(self.call("differ", "{}")[1]))
        assert server == {"international": "undefined", "number": "1234.5", "order": "z \u00e4", "half": "\ud800"}, server
        halves = {"chrome": "\ud800", "firefox": "\ufffd"}
        assert browser == {"international": "object", "number": "1.234,5", "order": "\u00e4 z", "half": halves[self.browser.name]}, browser

    @functools.cache
    def compare(self):
        """The inputs, and the results that differ: the number of the input, the name of the function, and both results."""
        inputs, differences = generate(random.Random(SEED)), []
        self.browser.get(self.server.url("/engines"))
        for start in range(0, INPUTS, BATCH):
            # Characters outside of ASCII are escaped, so that no program on the way changes half a character.
            batch = json.dumps(inputs[start : start + BATCH])
            self.browser.execute_script("document.querySelector('#inputs').value = arguments[0]", batch)
            found = json.loads(self.output_of("#compare"))
            assert found["counts"] == [BATCH, BATCH], found["counts"]
            differences += [(start + index, *rest) for index, *rest in found["differences"]]
        return inputs, differences

    def output_of(self, button):
        self.browser.execute_script("document.querySelector('output').value = ''")
        self.click(button)
        self.holds("document.querySelector('output').value")
        return self.value("document.querySelector('output').value")


def first_difference(here, there):
    """The first part of two results that differs."""
    try:
        here, there = json.loads(here), json.loads(there)
        number = next(number for number, (one, other) in enumerate(zip(here, there)) if one != other)
        return f"part {number} is {ascii(here[number])} on the server and {ascii(there[number])} in the browser"
    except (ValueError, StopIteration, TypeError, KeyError):
        return f"{ascii(here)} on the server and {ascii(there)} in the browser"


def generate(chance):
    characters = assigned_characters()
    return [
        {
            "text": text(chance, characters),
            "number": number(chance),
            "integer": integer(chance),
            "time": time(chance),
            "list": [text(chance, characters) if chance.random() < 0.5 else chance.choice(WORDS) for _ in range(chance.randrange(6))],
        }
        for _ in range(INPUTS)
    ]


def assigned_characters():
    """All characters of Unicode 3.2, of which no later version changes the properties: the same with every Python."""
    every = (chr(code) for code in range(0x110000) if not 0xD800 <= code < 0xE000)
    return [one for one in every if unicodedata.ucd_3_2_0.category(one) not in ("Cn", "Co")]


def text(chance, characters):
    kind = chance.random()
    if kind < 0.3:
        return chance.choice(WORDS)
    if kind < 0.5:
        return " ".join(chance.choices(WORDS, k=chance.randrange(4)))
    if kind < 0.75:
        return "".join(chance.choices(characters, k=chance.randrange(24)))
    if kind < 0.9:
        return "".join(chance.choices("aAbBzZ09 .,-_@\t\n\u00df\u00e9\u03a3\u03c3\u03c2\u0130", k=chance.randrange(24)))
    return str(number(chance))


def number(chance):
    kind = chance.random()
    if kind < 0.15:
        return chance.choice(NUMBERS)
    if kind < 0.4:
        return chance.randrange(-1_000_000, 1_000_000) / 1000
    if kind < 0.6:
        return chance.uniform(-1, 1) * 10.0 ** chance.randrange(-12, 24)
    # Any finite number.
    while True:
        (any_number,) = struct.unpack("<d", chance.randbytes(8))
        if abs(any_number) <= 1.7976931348623157e308:
            return any_number


def integer(chance):
    # Exact in a number, and in the product of some.
    return chance.choice([-1, 1]) * chance.randrange(2 ** chance.randrange(1, 53))


def time(chance):
    # All days that a date can have, most of them within centuries of today.
    most = 8_640_000_000_000_000 if chance.random() < 0.3 else 10_000_000_000_000
    return chance.randrange(-most, most)
