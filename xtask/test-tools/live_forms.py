"""Checks forms, handlers and calls on a live page in a browser, against a test server.

usage: live_forms.py SCRIPT

SCRIPT is the file of the script.
"""

import json
import pathlib
import sys
import tempfile
import threading
import urllib.parse

from selenium.webdriver.common.keys import Keys

from browser import launch_browser
from checks import run_checks
from live_page import LivePage
from live_server import PATIENCE, SCRIPT, LiveServer

FORM = '<form method="post" action="/board/post"{0}><input type="hidden" name="forum" value="garden"><label>Text <input name="body"></label><textarea name="more"></textarea><button name="way" value="quick">Post</button></form>'
PROBLEM = {"type": "about:blank", "title": "Bad Request", "status": 400, "detail": "The post is not complete.", "errors": [{"name": "body", "detail": "Write something."}]}


class Forms(LivePage):
    def post(self, index=0):
        """The fields that a form sent."""
        self.server.wait_for(lambda: len(self.server.posts) > index)
        path, headers, body = self.server.posts[index]
        return path, headers, dict(urllib.parse.parse_qsl(body.decode(), keep_blank_values=True))

    def hold_post(self, status, kind, text):
        """Holds the response to the next post until the returned function is called."""
        gate = threading.Event()
        self.server.post = lambda exchange, body: gate.wait(20) and (status, kind, text)
        return gate.set

    # Forms.

    def sends_a_form_without_a_reload(self):
        self.open(body=FORM.format(""))
        self.run("window.stays = true; window.told = []; addEventListener('done', (event) => told.push(event.detail))")
        self.server.post = lambda exchange, body: (200, "application/json", '{"id": 7}')
        self.find("[name=body]").send_keys("h\u00e9llo & <b>")
        self.run("document.querySelector('textarea').value = 'two\\nlines'")
        self.find("button").click()
        path, headers, fields = self.post()
        assert path == "/board/post" and headers["Content-Type"].startswith("application/x-www-form-urlencoded")
        assert headers["Accept"] == "application/json, text/html;q=0.5", headers
        assert fields == {"forum": "garden", "body": "h\u00e9llo & <b>", "more": "two\r\nlines", "way": "quick"}, fields
        self.holds("window.told.length")
        assert self.run("return told") == [{"id": 7}]
        assert self.run("return [window.stays, document.activeElement.name, document.querySelector('[name=body]').value]") == [True, "body", ""]

    def honors_formaction(self):
        self.open(body=FORM.format("").replace("</form>", '<button id="other" formaction="/board/other" name="way" value="slow">x</button></form>'))
        self.find("#other").click()
        path, _, fields = self.post()
        assert path == "/board/other" and fields["way"] == "slow"

    def sends_a_form_once(self):
        self.open(FORM.format(" id=f"))
        answer = self.hold_post(204, None, "")
        self.find("[name=body]").send_keys("one")
        self.find("button").click()
        self.holds("document.querySelector('form.is-sending button:disabled')")
        self.run("document.querySelector('form').requestSubmit(); document.querySelector('form').requestSubmit()")
        # A patch during the request does not change the form; it is applied when the request is
        # done.
        self.change(0, "<p>new</p>" + FORM.format(" id=f title=new"))
        assert self.text("p") == "new"
        assert self.run("return [document.querySelector('form').title, document.querySelector('[name=body]').value]") == ["", "one"]
        self.find("textarea").send_keys("written on")
        answer()
        self.holds("!document.querySelector('form.is-sending, button:disabled')")
        self.holds("document.querySelector('form').title === 'new'")
        assert self.run("return document.querySelector('textarea').value") == "written on"
        assert len(self.server.posts) == 1

    def sends_files(self):
        self.open(body='<form method="post" enctype="multipart/form-data" action="/up"><input type="file" name="file"><button>x</button></form>')
        with tempfile.NamedTemporaryFile(suffix=".txt") as file:
            pathlib.Path(file.name).write_text("what is in it")
            self.find("[type=file]").send_keys(file.name)
            self.find("button").click()
            self.server.wait_for(lambda: self.server.posts)
        _, headers, body = self.server.posts[0]
        assert headers["Content-Type"].startswith("multipart/form-data; boundary=")
        assert b"what is in it" in body and b'filename="' in body, body

    def leaves_other_forms_to_the_browser(self):
        other = '<form method="post" action="/plain" {0}><button {1}>x</button></form>'
        for form, button in [("data-reload", ""), ("", "data-reload"), ('target="_top"', "")]:
            self.open(body=other.format(form, button))
            self.run("window.stays = true")
            self.server.post = lambda exchange, body: (200, "text/html", "<title>Plain</title>")
            self.find("button").click()
            self.holds("document.title === 'Plain'")
            assert self.run("return window.stays") is None, (form, button)
        self.open(body='<form action="/found"><input name="q" value="x"><button>x</button></form>', found=("Found", "<h1>Found</h1>"))
        self.run("window.stays = true")
        self.find("button").click()
        self.holds("document.title === 'Found'")
        assert self.run("return [window.stays ?? null, location.search]") == [None, "?q=x"]

    def shows_a_problem_at_its_field(self):
        self.open(FORM.format(""))
        self.server.post = lambda exchange, body: (400, "application/problem+json", json.dumps(PROBLEM))
        self.find("textarea").send_keys("kept")
        self.find("button").click()
        self.holds("document.querySelector('[role=alert]')")
        problem = self.run("const field = document.querySelector('[name=body]'); return [field.ariaInvalid, document.getElementById(field.getAttribute('aria-describedby')).textContent, document.activeElement === field, document.querySelectorAll('.problem').length]")
        assert problem == ["true", "Write something.", True, 1], problem
        # The problem remains when the page changes.
        self.change(0, "<p>new</p>" + FORM.format(""))
        assert self.run("return document.querySelectorAll('[aria-invalid] , .problem').length") == 2
        assert self.run("return document.querySelector('textarea').value") == "kept"
        self.server.post = lambda exchange, body: (204, None, "")
        self.find("button").click()
        # The next attempt removes the problem at once; the form is cleared when its response
        # arrives.
        self.holds("!document.querySelector('.problem, [aria-invalid], [aria-describedby]')")
        self.holds("document.querySelector('textarea').value === ''")

    def shows_a_problem_without_a_field_at_the_form(self):
        self.open(body=FORM.format(""))
        problem = {**PROBLEM, "errors": [{"name": "forum", "detail": "There is no such forum."}]}
        self.server.post = lambda exchange, body: (409, "application/problem+json", json.dumps(problem))
        self.find("button").click()
        self.holds("document.querySelector('form > [role=alert]')")
        assert self.text("form > [role=alert]") == "The post is not complete. forum: There is no such forum."
        self.server.post = lambda exchange, body: (500, "text/plain", "<b>oops</b>")
        self.find("button").click()
        self.holds("document.querySelector('form > [role=alert]')?.textContent === '500 Internal Server Error'")

    def keeps_text_when_an_error_page_arrives(self):
        self.open(body=FORM.format(""))
        self.find("[name=body]").send_keys("precious")
        page = "<title>Unprocessable Content</title><h1>Unprocessable Content</h1><p>`body` must have 3 letters</p>"
        self.server.post = lambda exchange, body: (422, "text/html", page)
        self.find("button").click()
        self.holds("document.querySelector('[role=alert]')")
        assert self.text("[role=alert]") == "`body` must have 3 letters"
        assert self.run("return document.querySelector('[name=body]').value") == "precious"
        # A response with the form and its problem is displayed.
        self.server.post = lambda exchange, body: (422, "text/html", "<title>Again</title><p id=why>Too short.</p>" + FORM.format(""))
        self.find("button").click()
        self.holds("document.querySelector('#why')")
        assert self.run("return [document.querySelector('[name=body]').value, location.pathname]") == ["precious", "/"]

    def keeps_text_when_the_server_is_away(self):
        self.open(body=FORM.format(' data-failed="Nobody is there."'))
        self.find("[name=body]").send_keys("precious")
        self.browser.set_network_conditions(offline=True, latency=0, throughput=1)
        try:
            self.find("button").click()
            self.holds("document.querySelector('[role=alert]')")
        finally:
            self.browser.delete_network_conditions()
        assert self.text("[role=alert]") == "Nobody is there."
        assert self.run("return [document.querySelector('[name=body]').value, document.querySelector('button').disabled]") == ["precious", False]
        self.find("button").click()
        assert self.post()[2]["body"] == "precious"

    def shows_the_page_of_a_redirect(self):
        self.open("<p>one</p>", body="<h1>First</h1>{0}<dialog id=d>x</dialog>" + FORM.format(""), second=("Second", "<h1>Second</h1>{0}" + FORM.format("")))
        self.run("window.stays = true; document.querySelector('#d').show()")
        self.server.post = lambda exchange, body: (303, "Location", "/second?at=1")
        self.find("[name=body]").send_keys("hi")
        self.run("document.querySelector('textarea').value = 'draft of the first'")
        self.find("button").click()
        self.holds("document.title === 'Second'")
        seen = self.run("return [window.stays, location.pathname + location.search, document.activeElement.localName, document.querySelector('textarea').value]")
        assert seen == [True, "/second?at=1", "h1", ""], seen
        self.server.wait_for(lambda: self.server.asked[-1][0]["page"] == "/second?at=1")
        self.change(0, "<p>two</p>")
        assert self.text("p") == "two"
        self.browser.back()
        self.holds("document.title === 'Live'")
        assert self.run("return [window.stays, location.pathname]") == [True, "/"]
        self.server.wait_for(lambda: self.server.asked[-1][0]["page"] == "/")

    def drops_a_late_page(self):
        self.open("<p>one</p>", body="<h1>First</h1>{0}" + FORM.format(""), second=("Second", "<h1>Second</h1>{0}"))
        late = self.server.delay("/")
        self.server.send("event: reload\ndata: \n\n")
        assert late.asked.wait(PATIENCE), "the page is not asked for"
        self.server.post = lambda exchange, body: (303, "Location", "/second")
        self.find("[name=body]").send_keys("hi")
        self.find("button").click()
        self.holds("document.title === 'Second'")
        late.allowed.set()
        assert late.over.wait(PATIENCE), "the page did not come"
        # Complete or aborted, the browser has finished the request.
        self.holds("performance.getEntriesByName(location.origin + '/', 'resource').length")
        self.is_open()
        self.change(0, "<p>two</p>")
        seen = self.run("return [document.title, location.pathname]")
        assert seen == ["Second", "/second"], seen

    def updates_the_same_page_in_place(self):
        self.open("<p>one</p>", body="<input id=search>{0}" + FORM.format(""))
        self.find("#search").send_keys("half")
        self.server.post = lambda exchange, body: (303, "Location", "/")
        self.server.regions[0] = "<p>two</p>"
        length = self.run("return history.length")
        self.find("[name=body]").send_keys("hi", Keys.ENTER)
        self.holds("document.querySelector('p').textContent === 'two'")
        self.holds("document.querySelector('[name=body]').value === ''")
        assert self.run("return [document.querySelector('#search').value, history.length]") == ["half", length]

    def navigates_to_a_page_with_its_own_scripts(self):
        self.open(body=FORM.format(""), second=("Second", "<script type=module src=/tools/none.mjs></script>"))
        self.run("window.stays = true")
        self.server.post = lambda exchange, body: (303, "Location", "/second")
        self.find("button").click()
        self.holds("document.title === 'Second' && !window.stays")

    # Handlers.

    def calls_services_from_handlers(self):
        self.open(body="""<button data-id="it's" data-on="click: call /board/vote id=7 text='7' word=two name=data.id is=true none=null">x</button><input type=range max=9 value=3 data-on="change: call /house/set level=this.valueAsNumber">""")
        self.find("button").click()
        self.server.wait_for(lambda: self.server.posts)
        path, headers, body = self.server.posts[0]
        assert path == "/board/vote" and headers["Content-Type"] == "application/json"
        assert json.loads(body) == {"id": 7, "text": "7", "word": "two", "name": "it's", "is": True, "none": None}, body
        self.find("input").send_keys(Keys.ARROW_RIGHT)
        self.server.wait_for(lambda: len(self.server.posts) == 2)
        assert json.loads(self.server.posts[1][2]) == {"level": 4}
        assert not self.console_messages()

    def stops_a_handler_at_a_failure(self):
        self.open(body='<button data-on="click: confirm \'Really do?\'; call /board/delete; hide #row">x</button><p id=row>row</p>')
        self.find("button").click()
        alert = self.browser.switch_to.alert
        assert alert.text == "Really do?"
        alert.dismiss()
        self.server.post = lambda exchange, body: (403, "application/problem+json", '{"detail": "Not yours."}')
        self.find("button").click()
        self.browser.switch_to.alert.accept()
        self.holds("document.querySelector('button + [role=alert]')")
        assert self.text("[role=alert]") == "Not yours." and not self.run("return document.querySelector('#row').hidden")
        assert len(self.server.posts) == 1, "a declined confirmation called the service"
        self.server.post = lambda exchange, body: (204, None, "")
        self.find("button").click()
        self.browser.switch_to.alert.accept()
        self.holds("document.querySelector('#row').hidden && !document.querySelector('[role=alert]')")

    def confirms_before_sending(self):
        self.open(body=FORM.format(' data-on="submit: confirm Sure?"'))
        self.find("button").click()
        self.browser.switch_to.alert.dismiss()
        assert self.run("return location.pathname") == "/"
        self.find("[name=body]").send_keys("sent")
        self.find("button").click()
        self.browser.switch_to.alert.accept()
        # The declined form would have been the first post.
        assert self.post()[2]["body"] == "sent"

    def shows_hides_and_sets(self):
        page = (
            '<button id=t aria-expanded=false aria-controls=menu data-on="click: toggle #menu; toggle \'closest section\' is-wide">x</button><ul id=menu hidden><li>{0}</li></ul>'
            '<dialog><b>{0}</b></dialog><button id=d data-on="click: show dialog">x</button><div popover>p</div><details><summary>s</summary></details>'
            '<input id=k data-on="keydown.Escape: set this \'\'; focus: set #out \'a focus\'; input: set #out this.value"><output id=out></output>'
        )
        self.open("<section>" + page.format("a") + "</section>")
        self.find("#t").click()
        look = "return [!document.querySelector('#menu').hidden, document.querySelector('#t').ariaExpanded, document.querySelector('section').className]"
        self.returns(look, [True, "true", "is-wide"])
        # Changes by handlers stay when an unrelated part changes.
        self.change(0, "<section>" + page.format("b") + "</section>")
        assert self.text("#menu") == "b" and self.run(look) == [True, "true", "is-wide"]
        # A new value from the server wins.
        self.change(0, "<section class=red>" + page.format("c") + "</section>")
        assert self.run(look) == [True, "true", "red"]
        self.find("#t").click()
        self.returns(look, [False, "false", "red is-wide"])
        self.find("#d").click()
        self.holds("document.querySelector('dialog').matches(':modal')")
        self.run("document.querySelector('dialog').close()")
        self.find("#k").click()
        self.holds("document.querySelector('#out').textContent === 'a focus'")
        self.find("#k").send_keys("words")
        self.holds("document.querySelector('#out').textContent === 'words'")
        self.find("#k").send_keys(Keys.ESCAPE)
        self.holds("document.querySelector('#k').value === ''")
        assert not self.console_messages()

    def keeps_a_handlers_change_until_the_server_agrees(self):
        row = '<p id=a{0}>x</p><button data-on="click: toggle #a done">x</button>{1}'
        self.open(row.format("", 1))
        self.find("button").click()
        self.change(0, row.format("", 2))
        assert self.run("return document.querySelector('#a').className") == "done"
        self.change(0, row.format(" class=done", 3))
        self.change(0, row.format("", 4))
        assert self.run("return document.querySelector('#a').className") == ""

    def queues_the_newest_call(self):
        self.open(body='<input type=range max=9 value=1 data-on="change: call /set level=this.valueAsNumber">')
        answer = self.hold_post(204, None, "")
        for _ in range(4):
            self.find("input").send_keys(Keys.ARROW_RIGHT)
        self.server.wait_for(lambda: self.server.posts)
        answer()
        self.server.wait_for(lambda: len(self.server.posts) == 2)
        self.holds("!document.querySelector('.is-sending')")
        assert [json.loads(body) for _, _, body in self.server.posts] == [{"level": 2}, {"level": 5}], self.server.posts

    def fetches_a_page_again_after_a_form(self):
        self.open("<p>one</p>", body="{0}" + FORM.format(" title=old"))
        answer = self.hold_post(204, None, "")
        self.find("button").click()
        self.holds("document.querySelector('form.is-sending')")
        self.server.pages["/"] = ("Anew", "{0}" + FORM.format(" title=new"))
        self.server.send("event: reload\ndata: \n\n")
        self.holds("document.title === 'Anew'")
        assert self.run("return document.querySelector('form').title") == "old"
        answer()
        self.holds("document.querySelector('form').title === 'new'")
        self.is_open()

    def keeps_the_page_when_an_event_is_refused(self):
        self.open("<p>one</p>")
        self.server.refusal = lambda is_stream: 401 if "on" in self.server.asked[-1][0] else None
        self.browser.execute_async_script(f"const done = arguments[0]; import('{SCRIPT}').then(({{ on }}) => {{ on('fire', () => 1); done(); }})")
        self.server.wait_for(lambda: len(self.server.asked) > 2 and "on" not in self.server.asked[-1][0])
        self.is_open()
        self.change(0, "<p>two</p>")
        assert self.text("p") == "two"

    def runs_handlers_in_patches(self):
        self.open("<p>one</p>")
        self.change(0, '<p data-on="dblclick: set this twice; keyup.q: set this never">one</p>')
        self.run("document.querySelector('p').dispatchEvent(new MouseEvent('dblclick', { bubbles: true }))")
        assert self.text("p") == "twice"

    def reports_mistakes_in_handlers(self):
        for handler, why in [("click: explode #a", "explode"), ("click: constructor x", "constructor"), ("click: hide #nowhere", "#nowhere"), ("click: call https://example.org/x", "another site"), ("click: call /x y", "`y`")]:
            self.open(body=f'<button data-on="{handler}">x</button>')
            self.find("button").click()
            self.logs(why)
            assert not self.server.posts, handler

    def fires_an_event_after_a_form(self):
        self.open(body='<div id=box>' + FORM.format(' data-on="done: hide #box"') + "</div>")
        self.find("button").click()
        self.holds("document.querySelector('#box').hidden")

    # The interface for a page's own scripts.

    def offers_call_and_on_to_scripts(self):
        self.open("<p>one</p>")
        self.server.post = lambda exchange, body: (200, "application/json", '{"a": [1, null]}')
        value = self.browser.execute_async_script(f"const done = arguments[0]; import('{SCRIPT}').then(({{ call }}) => call('/app/thing', {{ x: 1 }})).then(done, done)")
        assert value == {"a": [1, None]} and json.loads(self.server.posts[0][2]) == {"x": 1}
        self.server.post = lambda exchange, body: (400, "application/problem+json", json.dumps(PROBLEM))
        error = self.browser.execute_async_script(f"const done = arguments[0]; import('{SCRIPT}').then(({{ call }}) => call('/app/thing')).catch(({{ message, status, errors }}) => done({{ message, status, errors }}))")
        assert error == {"message": "The post is not complete.", "status": 400, "errors": PROBLEM["errors"]}, error
        self.browser.execute_async_script(f"const done = arguments[0]; window.heard = []; import('{SCRIPT}').then(({{ on }}) => {{ on('fire', () => {{ throw new Error('mine'); }}); window.off = on('fire', (value) => heard.push(value)); on('a,b', () => 1); done(); }})")
        self.server.wait_for(lambda: self.server.asked[-1][0].get("on") == "fire,a%2Cb" or self.server.asked[-1][0].get("on") == "fire,a,b")
        self.is_open()
        self.server.send('event: event\ndata: {"name": "fire", "data": {"n": 1}}\n\n')
        self.holds("heard.length === 1")
        self.run("window.off()")
        self.server.send('event: event\ndata: {"name": "fire", "data": 2}\n\n')
        self.change(0, "<p>two</p>")
        assert self.run("return heard") == [{"n": 1}]


def main():
    _, script = sys.argv
    server = LiveServer(script)
    with launch_browser() as browser:
        forms = Forms(browser, server)
        run_checks([
            ("a form is sent without a reload, as the browser would send it", forms.sends_a_form_without_a_reload),
            ("a button may choose the address of its form", forms.honors_formaction),
            ("a form is sent once, and patches do not change it meanwhile", forms.sends_a_form_once),
            ("files are sent", forms.sends_files),
            ("forms that opt out are left to the browser", forms.leaves_other_forms_to_the_browser),
            ("a problem is shown at its field until the next attempt", forms.shows_a_problem_at_its_field),
            ("a problem without a field is shown at the form", forms.shows_a_problem_without_a_field_at_the_form),
            ("an error page does not discard typed text", forms.keeps_text_when_an_error_page_arrives),
            ("typed text survives an outage of the server", forms.keeps_text_when_the_server_is_away),
            ("the page that a form redirects to is shown at its address, and Back returns", forms.shows_the_page_of_a_redirect),
            ("a late page is dropped for the result of a form", forms.drops_a_late_page),
            ("a redirect to the same page updates it in place", forms.updates_the_same_page_in_place),
            ("the browser navigates to a page with its own scripts", forms.navigates_to_a_page_with_its_own_scripts),
            ("handlers call services with typed arguments", forms.calls_services_from_handlers),
            ("a handler stops at a declined confirmation or a failure", forms.stops_a_handler_at_a_failure),
            ("a user may decline to send a form", forms.confirms_before_sending),
            ("handlers show, hide and set, and patches keep the result", forms.shows_hides_and_sets),
            ("a handler's change stays until the server agrees", forms.keeps_a_handlers_change_until_the_server_agrees),
            ("an element sends one call at a time and queues the newest", forms.queues_the_newest_call),
            ("a page that arrives while a form is sent is fetched again", forms.fetches_a_page_again_after_a_form),
            ("a refused event subscription does not reload the page", forms.keeps_the_page_when_an_event_is_refused),
            ("handlers in patches run, for events of any kind", forms.runs_handlers_in_patches),
            ("mistakes in handlers are reported in the console", forms.reports_mistakes_in_handlers),
            ("a sent form fires an event", forms.fires_an_event_after_a_form),
            ("a page's own script calls services and receives events", forms.offers_call_and_on_to_scripts),
        ])


if __name__ == "__main__":
    main()
