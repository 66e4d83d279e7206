"""Checks the limits of columns that a form shows to the browser.

usage: limits_browser.py PROGRAM

PROGRAM is the example of services. Its markup has none of the checked attributes.
"""

import sys

from selenium.webdriver.common.by import By

from browser import launch_browser
from checks import run_checks
from program import Program, until

HOP = "\N{HERB}" * 20 + "\N{BEER MUG}" * 20


def field(browser, name):
    return browser.find_element(By.NAME, name)


def validity(browser, name):
    """The reasons for which the browser refuses the value of a field."""
    script = "const found = []; for (const why in arguments[0].validity) if (arguments[0].validity[why]) found.push(why); return found"
    return browser.execute_script(script, field(browser, name))


def fill(browser, **values):
    # By script, since the driver types no letters beyond the basic plane.
    for name, value in values.items():
        browser.execute_script("arguments[0].value = arguments[1]", field(browser, name), value)


def submit(browser):
    browser.find_element(By.TAG_NAME, "button").click()


def entries(browser):
    return [entry.text for entry in browser.find_elements(By.TAG_NAME, "li")]


def has_attributes(browser, program):
    browser.get(program.url())
    found = {
        name: {key: field(browser, name).get_dom_attribute(key) for key in ("required", "maxlength", "min", "max")}
        for name in ("name", "words", "stars")
    }
    expected = {
        "name": {"required": "true", "maxlength": "80", "min": None, "max": None},
        "words": {"required": "true", "maxlength": "1000", "min": None, "max": None},
        "stars": {"required": "true", "maxlength": None, "min": "1", "max": "5"},
    }
    assert found == expected, found


def refuses(browser, program):
    browser.get(program.url())
    fill(browser, words="Hello", stars="5")
    submit(browser)
    assert validity(browser, "name") == ["valueMissing"], validity(browser, "name")
    for value, why in (("0", "rangeUnderflow"), ("6", "rangeOverflow"), ("", "valueMissing"), ("2.5", "stepMismatch")):
        fill(browser, name="Ann", stars=value)
        submit(browser)
        assert validity(browser, "stars") == [why], (value, validity(browser, "stars"))
    # Nothing was sent: the page is still there, with its values.
    assert field(browser, "words").get_property("value") == "Hello"
    assert program.ask("GET", "/")[1].count("<li>") == 0


def types_no_more(browser, program):
    browser.get(program.url())
    field(browser, "name").send_keys("a" * 100)
    typed = field(browser, "name").get_property("value")
    assert typed == "a" * 80, len(typed)


def accepts(browser, program):
    browser.get(program.url())
    # Forty characters, each of two units of UTF-16.
    fill(browser, name=HOP, words="Hello", stars="5")
    assert validity(browser, "name") == ["valid"], validity(browser, "name")
    submit(browser)
    # The script of the page sends the form; the list is in no live region.
    until(lambda: "<li>" in program.ask("GET", "/")[1], "the entry is stored")
    browser.refresh()
    assert entries(browser) == [f"{HOP}: Hello (5)"], entries(browser)


def is_checked_by_the_server(browser, program):
    browser.get(program.url())
    browser.execute_script("document.forms[0].noValidate = true")
    fill(browser, name="Ann", words="Hello", stars="6")
    submit(browser)
    text = lambda: browser.execute_script("return document.body.innerText")
    until(lambda: "from 1 to 5" in text(), text)
    assert program.ask("GET", "/")[1].count("<li>") == 1


def main():
    with Program(sys.argv[1]) as program, launch_browser() as browser:
        run_checks([
            ("a form shows the limits of columns as attributes", lambda: has_attributes(browser, program)),
            ("the browser refuses missing and excessive values", lambda: refuses(browser, program)),
            ("the browser types no more than twice the limit", lambda: types_no_more(browser, program)),
            ("the browser accepts characters of two units up to the limit", lambda: accepts(browser, program)),
            ("the server checks what the browser does not", lambda: is_checked_by_the_server(browser, program)),
        ])


main()
