//! Live pages of a program with rights: a right that is lost ends the updates of an open page.

use bine::prelude::*;
use bine::{AccessRules, Rights, Signal, Who};

use std::sync::LazyLock;

use super::viewer::{Event, Viewer};
use crate::app::{options, program};
use crate::harness::{KINDS, Program, Reply};

/// The program under test. Ordinary test runs skip it.
#[test]
fn serve_live_program_with_rights() -> Exit {
    let Some(options) = options() else { return Exit::success() };
    let rules = AccessRules::new()
        .read("/board", Who::group("editors"))
        .read("/open/*", Who::Anonymous)
        .member("administrators", "root");
    App::new()
        .rights(rules)
        .page(log_in)
        .page(change_group)
        .page(close)
        .page(count)
        .page(board)
        .page(open)
        .page(without_rule)
        .run_with("Usage: live rights", options.lines())
}

static COUNT: LazyLock<Signal<u64>> = LazyLock::new(Signal::default);

#[page(POST "/login/{user}")]
async fn log_in(session: Session, user: Path<Text>) -> Result<Response, Error> {
    session.log_in(user).await?;
    Ok(Response::text("in"))
}

#[page(POST "/group/{word}/{user}")]
async fn change_group(
    rights: Rights,
    word: Path<Text>,
    user: Path<Text>,
) -> Result<Response, Error> {
    match &**word {
        "add" => rights.add_to_group(&user, "editors").await?,
        _ => rights.remove_from_group(&user, "editors").await?,
    };
    Ok(Response::text("changed"))
}

/// Adds a rule to a path.
#[page(POST "/close/{path..}")]
async fn close(rights: Rights, path: Path<Text>) -> Result<Response, Error> {
    rights.grant(Who::user("ben"), bine::Right::Read, &format!("/{}", *path)).await?;
    Ok(Response::text("closed"))
}

#[page(POST "/count")]
async fn count() -> Response {
    COUNT.update(|count| *count += 1);
    Response::text("counted")
}

#[page("/board")]
async fn board() -> impl Page {
    html!(<Live><p>confidential {COUNT.get()}</p></Live>)
}

#[page("/open/{name}")]
async fn open(name: Path<Text>) -> impl Page {
    html!(<Live><p>{name} {COUNT.get()}</p></Live>)
}

#[page("/without")]
async fn without_rule() -> impl Page {
    html!(<Live><p>without {COUNT.get()}</p></Live>)
}

fn post(program: &Program, target: &str, fields: &str) -> Reply {
    let mut peer = program.connect();
    let fields = format!("Host: a\r\n{fields}Content-Length: 0\r\n");
    peer.send(format!("POST {target} HTTP/1.1\r\n{fields}\r\n"));
    peer.reply()
}

fn cookie(program: &Program, user: &str) -> String {
    let reply = post(program, &format!("/login/{user}"), "");
    let (pair, _) = reply.header("Set-Cookie").unwrap().split_once(';').unwrap();
    format!("Cookie: {pair}\r\n")
}

#[test]
fn lost_rights_end_the_updates_of_open_pages() {
    for scheduler in KINDS {
        let options = ["--data", "memory", "--scheduler", scheduler, "--workers", "48"];
        let serve = "live::rights::serve_live_program_with_rights";
        let program = Program::start(&mut program(serve, &options));
        let [ann, ben] = ["ann", "ben"].map(|user| cookie(&program, user));
        for user in ["ann", "ben"] {
            assert_eq!(post(&program, &format!("/group/add/{user}"), "").status(), 200);
        }
        // The stream of a page that the visitor may not see is refused.
        assert_eq!(Viewer::with(&program, "/board", "", false).follow(), 401);
        let mut anns = Viewer::known(&program, "/board", &ann);
        let mut bens = Viewer::known(&program, "/board", &ben);
        let mut open = Viewer::of(&program, "/open/a");
        let mut without = Viewer::of(&program, "/without");
        post(&program, "/count", "");
        for viewer in [&mut anns, &mut bens, &mut open, &mut without] {
            assert_eq!(viewer.next(), Event::Patch(0), "{scheduler}");
        }
        assert_eq!(post(&program, "/group/remove/ann", "").status(), 200);
        assert_eq!(anns.next(), Event::Reload, "{scheduler}");
        assert_eq!(anns.fetch().status(), 403);
        assert_eq!(anns.follow(), 403);
        // A new rule closes pages that were open to everyone.
        for path in ["open/a", "without"] {
            assert_eq!(post(&program, &format!("/close/{path}"), "").status(), 200);
        }
        for viewer in [&mut open, &mut without] {
            assert_eq!(viewer.next(), Event::Reload, "{scheduler}");
            assert_eq!(viewer.fetch().status(), 401);
        }
        post(&program, "/count", "");
        assert_eq!(bens.next(), Event::Patch(0), "{scheduler}");
        assert!(!anns.received.contains("confidential 2"), "{}", anns.received);
    }
}
