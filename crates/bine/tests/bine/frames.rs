//! Frames: the state of one browser tab, invisible to other tabs, kept across reload and Back.

use std::process::Command;

use bine::prelude::*;

use crate::actions::{Browser, actions};
use crate::app::{options, program};
use crate::harness::{Folder, Program};

/// Shows the forum chosen in this tab, with actions to change it.
#[page("/")]
async fn chosen(frame: Frame) -> impl Page {
    let forum: Option<Text> = frame.get("forum");
    let names: Vec<Text> = vec!["hops".into(), "malt & yeast".into()];
    html! {
        <Live><h1>{forum.unwrap_or("none".into())}</h1></Live>
        {button_list(names, |name| html!(<b>{name}</b>), |name| {
            action!([name: Text] |call| {
                let frame = call.frame()?;
                frame.set_in(call, "forum", name)
            })
        })}
        <a href={frame.to("/other?a=b")}>Other</a>
    }
}

#[page("/other")]
async fn other(frame: Frame) -> impl Page {
    let forum: Option<Text> = frame.get("forum");
    html! {
        <h2>{forum.unwrap_or("none".into())}</h2>
        <form method="post" action={action!(name = "home", |_call| Replace::with("/"))}></form>
        <form method="post" action={set}></form>
        <form method="post" action={action!(name = "wherever", |_call, to: Text| Replace::with(to))}></form>
    }
}

/// A page without a frame.
#[page("/plain")]
async fn plain() -> impl Page {
    html!(<form method="post" action={action!(name = "frameless", |call| call.frame().map(drop))}></form>)
}

/// Links to an address that is not on this site.
#[page("/away")]
async fn away(frame: Frame) -> impl Page {
    html!(<a href={frame.to("https://other.example/a")}>Away</a>)
}

/// Sets a value of a given length, to exceed the limit.
#[service]
async fn set(caller: Caller, length: usize) -> Result<(), Error> {
    caller.frame()?.set("text", "x".repeat(length)).await
}

#[test]
fn serve_frame_program() -> Exit {
    let Some(options) = options() else { return Exit::success() };
    let app = App::new().in_memory().page(chosen).page(other).page(plain).page(away).service(set);
    app.run_with("Usage: frames", options.lines())
}

fn command(options: &[&str]) -> Command {
    program("frames::serve_frame_program", options)
}

fn serve() -> Program {
    Program::start(&mut command(&[]))
}

/// Opens a page in a new tab. Returns its address with the frame.
fn open(visitor: &mut Browser, page: &str) -> String {
    let sent = visitor.get(page);
    assert_eq!(sent.status(), 303, "{}", sent.head);
    sent.header("Location").unwrap().to_owned()
}

#[test]
fn keeps_choice_per_tab_across_reload_and_back() {
    let program = serve();
    let mut visitor = Browser::new(&program);
    let (one, two) = (open(&mut visitor, "/"), open(&mut visitor, "/"));
    assert_ne!(one, two);
    assert!(one.starts_with("/?_frame="), "{one}");
    let page = visitor.get(&one);
    assert!(page.text().contains("<h1>none</h1>"), "{}", page.text());
    let choices = actions(&page);
    assert_eq!(visitor.submit(&choices[1], "").header("Location"), Some(&*one));
    let shows = |visitor: &mut Browser, page: &str, forum: &str| {
        let text = visitor.get(page).text().to_owned();
        assert!(text.contains(&format!(">{forum}</h")), "{page}: {text}");
    };
    shows(&mut visitor, &one, "malt &amp; yeast");
    shows(&mut visitor, &two, "none");
    let back = actions(&visitor.get(&two))[0].clone();
    assert_eq!(visitor.call(&back, "").status(), 204);
    shows(&mut visitor, &two, "hops");
    shows(&mut visitor, &one, "malt &amp; yeast");
    // A link keeps the frame.
    let other = one.replace("/?", "/other?a=b&");
    assert!(visitor.get(&one).text().contains(&other.replace('&', "&amp;")));
    shows(&mut visitor, &other, "malt &amp; yeast");
}

#[test]
fn replaces_page_and_keeps_frame() {
    let program = serve();
    let mut visitor = Browser::new(&program);
    let other = open(&mut visitor, "/other");
    let home = actions(&visitor.get(&other))[0].clone();
    let there = other.replace("/other?", "/?");
    for reply in [visitor.submit(&home, ""), visitor.call(&home, "")] {
        assert_eq!((reply.status(), reply.header("Location")), (303, Some(&*there)));
    }
    assert_eq!(visitor.get(&there).status(), 200);
}

#[test]
fn ignores_frame_of_other_visitor_and_stops_redirects_without_cookies() {
    let program = serve();
    let (mut visitor, mut other) = (Browser::new(&program), Browser::new(&program));
    let one = open(&mut visitor, "/");
    let [hops, _] = &actions(&visitor.get(&one))[..] else { panic!("two choices") };
    visitor.submit(hops, "");
    // A visitor without a session gets a frame of their own for the same link.
    let own = open(&mut other, &one);
    assert!(own.starts_with("/?_frame=0."), "{own}");
    assert!(other.get(&own).text().contains("<h1>none</h1>"));
    // So does a visitor with a session.
    let own = open(&mut other, &one);
    assert!(other.get(&own).text().contains("<h1>none</h1>"));
    assert!(other.get("/?_frame=x").header("Location").is_some_and(|own| own != "/?_frame=x"));
    let mut address = "/".to_owned();
    for status in [303, 303, 400] {
        other.cookie.clear();
        let reply = other.get(&address);
        assert_eq!(reply.status(), status, "{address}");
        reply.header("Location").unwrap_or_default().clone_into(&mut address);
    }
}

#[test]
fn frame_survives_restart_and_holds_four_kilobytes() {
    let folder = Folder::new();
    let data = folder.path().to_str().unwrap();
    let start = || Program::start(&mut command(&["--data", data]));
    let program = start();
    let mut visitor = Browser::new(&program);
    let one = open(&mut visitor, "/");
    let [hops, _] = &actions(&visitor.get(&one))[..] else { panic!("two choices") };
    visitor.submit(hops, "");
    drop(program);
    let program = start();
    visitor.peer = program.connect();
    assert!(visitor.get(&one).text().contains("<h1>hops</h1>"));
    let set = actions(&visitor.get(&one.replace("/?", "/other?")))[1].clone();
    let mut call = |length: usize, referer: &str| {
        let more = format!(
            "Accept: application/json\r\nContent-Type: application/json\r\nReferer: http://a{referer}\r\n"
        );
        visitor.ask("POST", &set, &more, &format!("{{\"length\":{length}}}")).status()
    };
    assert_eq!([call(4096, &one), call(4000, &one), call(1, "/")], [413, 204, 400]);
    let frameless = actions(&visitor.get("/plain"))[0].clone();
    assert_eq!(visitor.call(&frameless, "").status(), 400);
}

#[test]
fn rejects_replacement_by_other_site() {
    let program = serve();
    let mut visitor = Browser::new(&program);
    let other = open(&mut visitor, "/other");
    let page = visitor.get(&other);
    let wherever = actions(&page).into_iter().find(|action| action.contains("wherever")).unwrap();
    for elsewhere in ["//b.example", r"/\\b.example", r"/\t/b.example", "http://b.example", "b"] {
        let reply = visitor.call(&wherever, &format!("{{\"to\":\"{elsewhere}\"}}"));
        assert_eq!((reply.status(), reply.header("Location")), (500, None), "{elsewhere}");
    }
    let reply = visitor.call(&wherever, r#"{"to":"/#below"}"#);
    assert!(reply.header("Location").unwrap().ends_with("#below"), "{}", reply.head);
    let errors = program.stop().errors;
    assert!(errors.contains("leads elsewhere: a path begins with one `/`"), "{errors}");
}

/// The link led to the home page, and nothing said why.
#[test]
fn logs_links_to_addresses_that_are_no_paths() {
    let program = serve();
    let mut visitor = Browser::new(&program);
    for _ in 0..2 {
        let tab = open(&mut visitor, "/away");
        let page = visitor.get(&tab);
        assert!(page.text().contains("<a href=\"/?_frame="), "{}", page.text());
    }
    let errors = program.stop().errors;
    let line = include_str!("frames.rs").lines().position(|line| line.contains("https://other"));
    let told = format!(
        "frames.rs:{}:26: `frame.to(\"https://other.example/a\")` is no path of this site, so the link leads to `/`; write a path that starts with one `/`, or the address without `frame.to`",
        line.unwrap() + 1
    );
    assert!(errors.contains(&told), "{told}\n{errors}");
}
