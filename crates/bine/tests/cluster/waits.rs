//! Handlers that wait for what a different node has committed.

use std::time::Duration;

use bine::prelude::*;
use bine::test::Site;
use bine::{Position, Positions};
use bine_nats_server::NatsServer;
use serde_json::{Value, json};

use crate::board::{self, Note};
use crate::positions::{ROUNDS, Sent};
use crate::relay::Relay;

/// Adds a note, and returns the position of its commit.
#[service]
async fn add_note(caller: Caller, name: Text) -> Result<Position, Error> {
    caller
        .store()
        .change(move |changes| {
            changes.insert(Note { id: Id::unassigned(), name: name.clone(), count: 1 })?;
            Ok::<_, Error>(())
        })
        .await?;
    Ok(caller.positions().current())
}

/// Whether the note exists, once this node has applied a position.
#[service]
async fn has_note(
    caller: Caller,
    name: Text,
    after: Position,
    milliseconds: u64,
) -> Result<bool, Error> {
    caller.positions().wait_for(after, Duration::from_millis(milliseconds)).await?;
    Ok(caller.store().read().one(Note::BY_NAME, &*name).is_some())
}

#[page("/after")]
async fn page_after(
    store: Store,
    positions: Positions,
    after: Query<Position>,
) -> Result<impl Page, Error> {
    positions.wait_for(*after, Duration::from_mins(1)).await?;
    let count = store.read().all::<Note>().count();
    Ok(html!(<p>{count}" notes"</p>))
}

fn app() -> App {
    board::app().service(add_note).service(has_note).page(page_after)
}

fn node(url: &str, name: &str, app: App) -> Site {
    Site::with_settings(app, &["--cluster", url, "--cluster-node", name])
}

fn far_position(order: &str) -> String {
    format!("{}-{order}", u64::MAX)
}

/// Writes by one node and reads by a late one, until the node was late without a notice.
///
/// `write` returns a position, `read` sends a request that waits for it, and `expected` is in its response.
fn check_late_node(
    apps: [App; 2],
    write: impl Fn(&Site, usize) -> String,
    read: impl Fn(&Site, usize, &str) -> Sent,
    expected: impl Fn(usize) -> String,
) {
    let Some(nats) = NatsServer::start() else { return };
    let relay = Relay::start(nats.port());
    let [first, second] = apps;
    let (a, b) = (node(&nats.url(), "a", first), node(&relay.url(), "b", second));
    // An application is loaded by its first request, which declares its tables by the stream.
    let loaded = write(&a, ROUNDS);
    assert!(read(&b, ROUNDS, &loaded).text().starts_with("HTTP/1.1 200 "));
    for round in 0..ROUNDS {
        relay.pause();
        let position = write(&a, round);
        let mut sent = read(&b, round, &position);
        let is_waiting = sent.is_waiting();
        relay.resume();
        let text = sent.text();
        // On a busy machine the node may notice that it is cut off.
        if text.contains("Bine-Stale: ") || text.starts_with("HTTP/1.1 503 ") {
            continue;
        }
        assert!(is_waiting, "{text}");
        assert!(text.starts_with("HTTP/1.1 200 ") && text.contains(&expected(round)), "{text}");
        return;
    }
    panic!("the node was never late without a notice");
}

fn call(site: &Site, path: &str, arguments: &Value) -> Sent {
    Sent::new(
        site,
        &format!("POST {path}"),
        "Content-Type: application/json",
        &arguments.to_string(),
    )
}

fn written(site: &Site, path: &str, round: usize) -> String {
    let reply = site.post_json(path, &json!({ "name": format!("note {round}.") }));
    assert_eq!(reply.status(), 200, "{}", reply.text());
    reply.json::<String>()
}

fn arguments(round: usize, after: &str) -> Value {
    json!({ "name": format!("note {round}."), "after": after, "milliseconds": 60_000 })
}

#[test]
fn service_reads_what_was_committed_at_another_node() {
    check_late_node(
        [app(), app()],
        |site, round| written(site, "/cluster/add_note", round),
        |site, round, after| call(site, "/cluster/has_note", &arguments(round, after)),
        |_| "\r\n\r\ntrue".to_owned(),
    );
}

#[test]
fn page_reads_what_was_committed_at_another_node() {
    check_late_node(
        [app(), app()],
        |site, round| written(site, "/cluster/add_note", round),
        |site, _, after| Sent::get(site, &format!("/after?after={after}"), ""),
        |round| format!("<p>{} notes</p>", round + 2),
    );
}

#[test]
fn wait_is_bounded_and_ignores_positions_of_other_streams() {
    let Some(nats) = NatsServer::start() else { return };
    let a = node(&nats.url(), "a", app());
    let position = written(&a, "/cluster/add_note", 0);
    let (_, order) = position.split_once('-').unwrap();
    let has = |after: &str, milliseconds: u64| {
        let arguments = json!({ "name": "note 0.", "after": after, "milliseconds": milliseconds });
        a.post_json("/cluster/has_note", &arguments)
    };
    assert_eq!(has(&position, 0).text(), "true");
    assert_eq!(has(&far_position(order), 50).status(), 503);
    assert_eq!(has(&far_position("00000000"), 60_000).text(), "true");
    let invalid = has("17", 0);
    assert_eq!(invalid.status(), 400, "{}", invalid.text());
    assert!(invalid.text().contains("must be a position"), "{}", invalid.text());
}

#[test]
fn wait_of_a_cut_off_node_ends() {
    let Some(nats) = NatsServer::start() else { return };
    let a = node(&nats.url(), "a", app());
    let position = written(&a, "/cluster/add_note", 0);
    let (_, order) = position.split_once('-').unwrap();
    nats.pause();
    let sent = call(&a, "/cluster/has_note", &arguments(0, &far_position(order)));
    let text = sent.text();
    assert!(text.starts_with("HTTP/1.1 503 "), "{text}");
    nats.resume();
}

#[test]
fn one_machine_has_positions_and_never_waits() {
    let site = Site::new(app());
    let position = written(&site, "/cluster/add_note", 0);
    for after in [&*position, &far_position("00000000"), &far_position("12345678")] {
        let reply = site.post_json("/cluster/has_note", &arguments(0, after));
        assert_eq!((reply.status(), reply.text()), (200, "true"));
    }
}

#[cfg(feature = "script")]
mod scripts {
    use std::fs;
    use std::path::PathBuf;

    use super::*;

    const NOTES: &str = r#"import { change, page, position, service, table, text, waitForPosition } from "bine";
const notes = table("notes", { name: text().unique() });

export const add = service(async (ctx, { name }: { name: string }) => {
  await change(() => notes.insert({ name }));
  return position();
});
type Wait = { name: string; after: string; milliseconds: number };
export const has = service(async (ctx, { name, after, milliseconds }: Wait) => {
  await waitForPosition(after, { timeout: milliseconds });
  return notes.by("name", name).first() !== null;
});
export const early = service(async (ctx, { after }: { after: string }) => change(() => waitForPosition(after)));
export default page(async (ctx, { after }: { after: string }) => {
  const before = notes.count();
  await waitForPosition(after, { timeout: 60000 });
  return <p>{before} then {notes.count()} notes</p>;
});
"#;

    /// A folder with the application. It is removed when it is dropped.
    struct Application(PathBuf);

    impl Application {
        fn new(name: &str) -> Self {
            let name = format!("bine-cluster-waits-{}-{name}", std::process::id());
            let own = Self(std::env::temp_dir().join(name));
            fs::create_dir_all(own.0.join("notes")).unwrap();
            fs::write(own.0.join("notes/index.tsx"), NOTES).unwrap();
            own
        }

        fn app(&self) -> App {
            App::new().scripts(&self.0)
        }
    }

    impl Drop for Application {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn service_in_tsx_reads_what_was_committed_at_another_node() {
        let folder = Application::new("service");
        check_late_node(
            [folder.app(), folder.app()],
            |site, round| written(site, "/notes/add", round),
            |site, round, after| call(site, "/notes/has", &arguments(round, after)),
            |_| "\r\n\r\ntrue".to_owned(),
        );
    }

    #[test]
    fn page_in_tsx_reads_the_tables_again_after_the_wait() {
        let folder = Application::new("page");
        check_late_node(
            [folder.app(), folder.app()],
            |site, round| written(site, "/notes/add", round),
            |site, _, after| Sent::get(site, &format!("/notes/?after={after}"), ""),
            |round| format!("<p>{} then {} notes</p>", round + 1, round + 2),
        );
    }

    #[test]
    fn wait_in_tsx_is_bounded_and_needs_no_transaction() {
        let Some(nats) = NatsServer::start() else { return };
        let folder = Application::new("bounds");
        let a = node(&nats.url(), "a", folder.app());
        let position = written(&a, "/notes/add", 0);
        let (_, order) = position.split_once('-').unwrap();
        let has = |after: &str, milliseconds: i32| {
            let arguments =
                json!({ "name": "note 0.", "after": after, "milliseconds": milliseconds });
            a.post_json("/notes/has", &arguments)
        };
        assert_eq!(has(&position, 0).text(), "true");
        assert_eq!(has(&far_position("00000000"), 60_000).text(), "true");
        assert_eq!(has(&far_position(order), 50).status(), 503);
        assert_eq!(has("17", 50).status(), 500);
        assert_eq!(has(&position, -1).status(), 500);
        assert_eq!(a.post_json("/notes/early", &json!({ "after": position })).status(), 500);
    }

    #[test]
    fn one_machine_never_waits_in_tsx() {
        let folder = Application::new("single");
        let site = Site::new(folder.app());
        let position = written(&site, "/notes/add", 0);
        for after in [&*position, &far_position("00000000")] {
            let reply = site.post_json("/notes/has", &arguments(0, after));
            assert_eq!((reply.status(), reply.text()), (200, "true"));
        }
    }
}
