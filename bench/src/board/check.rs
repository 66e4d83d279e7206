//! Checks the responses of a contender before it is measured.

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::board::client::{Reply, send};
use crate::board::generator::{LISTED, Requests};
use crate::board::plan::{BoardCase, BoardServer};
use crate::board_data::{ADDED, FORTUNES, ROWS};

/// The row that the checks change, and its new value, which no random number is.
const CHANGED: u32 = 17;
const VALUE: u64 = 424_242;

/// Checks status, content and effect of all cases that the contender has.
pub(super) fn check_all(server: BoardServer, port: u16) -> Result<()> {
    for case in BoardCase::ALL.into_iter().filter(|case| server.serves(*case)) {
        let outcome = match case {
            BoardCase::Plaintext => check_plaintext(server, port),
            BoardCase::Json => check_greeting(server, port),
            BoardCase::Db | BoardCase::Record => check_row(server, case, port),
            BoardCase::Queries => check_rows(server, port).map(drop),
            BoardCase::Fortunes => check_fortunes(server, port),
            BoardCase::Updates => check_updates(server, port),
            BoardCase::List => check_list(server, port),
            BoardCase::Change => check_change(server, port),
            // Each update of a measurement is checked.
            BoardCase::Fan(_) => Ok(()),
        };
        outcome.with_context(|| format!("{}: {}", server.title(), case.title()))?;
    }
    Ok(())
}

/// Checks that the row of [`check_all`] still has its new value, after a crash.
pub(super) fn check_kept(server: BoardServer, port: u16) -> Result<()> {
    let value = stored(server, port, CHANGED)?;
    ensure!(value == VALUE, "{} lost an update: {value} instead of {VALUE}", server.title());
    Ok(())
}

fn ask(server: BoardServer, case: BoardCase, port: u16) -> Result<Reply> {
    let requests = Requests::of(server, case);
    send(port, requests.method, &requests.path_of(1), None)?.ok()
}

fn check_plaintext(server: BoardServer, port: u16) -> Result<()> {
    let reply = ask(server, BoardCase::Plaintext, port)?;
    ensure!(reply.media_type.starts_with("text/plain"), "the media type is {}", reply.media_type);
    ensure!(reply.body == "Hello, World!", "the body is `{}`", reply.body);
    Ok(())
}

fn check_greeting(server: BoardServer, port: u16) -> Result<()> {
    let value = ask(server, BoardCase::Json, port)?.json()?;
    ensure!(value == serde_json::json!({ "message": "Hello, World!" }), "the body is {value}");
    Ok(())
}

fn check_row(server: BoardServer, case: BoardCase, port: u16) -> Result<()> {
    let value = ask(server, case, port)?.json()?;
    let id = id_of(&value)?;
    ensure!(case == BoardCase::Db || id == 1, "the id is {id}, not 1");
    number_of(&value).map(drop)
}

/// Rows with different ids: one id for all would be no random choice.
fn check_rows(server: BoardServer, port: u16) -> Result<()> {
    rows(&ask(server, BoardCase::Queries, port)?.json()?).map(drop)?;
    for (text, expected) in [("0", 1), ("x", 1), ("501", 500)] {
        let path = format!("/queries?queries={text}");
        let value = send(port, "GET", &path, None)?.ok()?.json()?;
        let count = value.as_array().map_or(0, Vec::len);
        ensure!(count == expected, "{count} rows for {path}, not {expected}");
    }
    Ok(())
}

fn check_updates(server: BoardServer, port: u16) -> Result<()> {
    for (id, number) in rows(&ask(server, BoardCase::Updates, port)?.json()?)? {
        let found = stored(server, port, id)?;
        ensure!(found == number, "row {id} has {found} after an update to {number}");
    }
    Ok(())
}

fn check_list(server: BoardServer, port: u16) -> Result<()> {
    let value = ask(server, BoardCase::List, port)?.json()?;
    let items = if server == BoardServer::PocketBase { &value["items"] } else { &value };
    let ids: Vec<u32> = rows(items)?.into_iter().map(|(id, _)| id).collect();
    ensure!(ids == (1..=LISTED).collect::<Vec<_>>(), "the ids are {ids:?}");
    Ok(())
}

fn check_change(server: BoardServer, port: u16) -> Result<()> {
    let path = Requests::of(server, BoardCase::Change).path_of(CHANGED);
    let body = format!("{{\"randomNumber\":{VALUE}}}");
    let value = send(port, "PATCH", &path, Some(&body))?.ok()?.json()?;
    ensure!(id_of(&value)? == CHANGED && number_of(&value)? == VALUE, "the response is {value}");
    check_kept(server, port)
}

/// The number of this row in the store, read by a separate request.
fn stored(server: BoardServer, port: u16, id: u32) -> Result<u64> {
    // `axum-sqlite-grouped` is measured with updates only, but has all paths.
    let path = Requests::of(server, BoardCase::Record).path_of(id);
    number_of(&send(port, "GET", &path, None)?.ok()?.json()?)
}

/// Twenty rows with different ids: pairs of id and number.
fn rows(value: &Value) -> Result<Vec<(u32, u64)>> {
    let items = value.as_array().with_context(|| format!("no array: {value}"))?;
    let rows: Vec<(u32, u64)> =
        items.iter().map(|item| Ok((id_of(item)?, number_of(item)?))).collect::<Result<_>>()?;
    let mut ids: Vec<u32> = rows.iter().map(|(id, _)| *id).collect();
    ids.sort_unstable();
    ids.dedup();
    let expected = LISTED as usize;
    ensure!(rows.len() == expected && ids.len() == expected, "not {LISTED} rows: {value}");
    Ok(rows)
}

/// The id, which is a text of digits in `PocketBase`.
fn id_of(value: &Value) -> Result<u32> {
    let id = match &value["id"] {
        Value::String(text) => text.parse().ok(),
        other => other.as_u64(),
    };
    let id = id.filter(|id| (1..=u64::from(ROWS)).contains(id));
    Ok(id.with_context(|| format!("no id of a row: {value}"))? as u32)
}

fn number_of(value: &Value) -> Result<u64> {
    value["randomNumber"].as_u64().with_context(|| format!("no number: {value}"))
}

fn check_fortunes(server: BoardServer, port: u16) -> Result<()> {
    let reply = ask(server, BoardCase::Fortunes, port)?;
    ensure!(reply.media_type.starts_with("text/html"), "the media type is {}", reply.media_type);
    check_table(&reply.body)
}

/// Checks that the table has all fortunes in order, and that no text is markup.
fn check_table(page: &str) -> Result<()> {
    ensure!(!page.contains("<script>"), "a fortune is not escaped: {page}");
    let added = (0, ADDED);
    let mut expected: Vec<(u32, &str)> = (1..).zip(FORTUNES).chain([added]).collect();
    expected.sort_unstable_by_key(|(_, message)| *message);
    let found = page.split("<tr><td>").skip(1).map(|row| -> Result<(u32, String)> {
        let (id, rest) = row.split_once("</td><td>").context("a row without a message")?;
        let (message, _) = rest.split_once("</td>").context("a message without an end")?;
        ensure!(!message.contains(['<', '>']), "a message is not escaped: {message}");
        Ok((id.parse().with_context(|| format!("the id `{id}`"))?, unescaped(message)))
    });
    let found: Vec<(u32, String)> = found.collect::<Result<_>>()?;
    let found: Vec<(u32, &str)> = found.iter().map(|(id, text)| (*id, &**text)).collect();
    ensure!(found == expected, "the fortunes are {found:?}, not {expected:?}");
    Ok(())
}

fn unescaped(text: &str) -> String {
    let references = [
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&quot;", "\""),
        ("&#34;", "\""),
        ("&#39;", "'"),
        ("&#x27;", "'"),
        // The last one, or an escaped reference would be taken for one.
        ("&amp;", "&"),
    ];
    references.iter().fold(text.to_owned(), |text, (from, to)| text.replace(from, to))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(change: impl Fn(&mut Vec<(u32, String)>)) -> String {
        let mut rows: Vec<(u32, String)> = (1..).zip(FORTUNES.map(str::to_owned)).collect();
        rows.push((0, ADDED.to_owned()));
        rows.sort_by(|one, other| one.1.cmp(&other.1));
        change(&mut rows);
        let row = |(id, text): &(u32, String)| {
            let text = text.replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;");
            format!("<tr><td>{id}</td><td>{text}</td></tr>")
        };
        rows.iter().map(row).collect()
    }

    #[test]
    fn accepts_only_all_fortunes_escaped_and_in_order() {
        check_table(&page(|_| {})).unwrap();
        assert!(check_table(&page(|rows| rows.swap(0, 1))).is_err());
        assert!(check_table(&page(|rows| drop(rows.pop()))).is_err());
        let raw = page(|_| {}).replace("&lt;script&gt;", "<script>");
        assert!(check_table(&raw).unwrap_err().to_string().contains("not escaped"));
    }

    #[test]
    fn reads_rows_with_ids_of_both_kinds() {
        let value = serde_json::json!({ "id": "000000000000012", "randomNumber": 5 });
        assert_eq!((id_of(&value).unwrap(), number_of(&value).unwrap()), (12, 5));
        let value = serde_json::json!({ "id": 10_001, "randomNumber": "5" });
        assert!(id_of(&value).is_err() && number_of(&value).is_err());
        assert!(rows(&serde_json::json!([{ "id": 1, "randomNumber": 5 }])).is_err());
    }
}
