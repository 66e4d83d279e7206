//! The board that `bine new` writes: it is short, and a crash of its server loses no post that a
//! client was told of.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::{Arc, Mutex};
use std::time::Instant;
use std::{fs, thread};

use crate::harness::{Folder, PATIENCE, Program};
use crate::{bine, run};

/// A folder with a new board.
fn board(folder: &Folder) -> String {
    let site = folder.join("board").to_str().unwrap().to_owned();
    assert_eq!(run(&["new", &site]).code, Some(0));
    site
}

fn serve(site: &str) -> Program {
    let options = ["serve", site, "--listen", "127.0.0.1:0", "--development", "off"];
    Program::start(&mut bine(&options))
}

#[test]
fn writes_a_board_in_at_most_25_lines() {
    let folder = Folder::new();
    let page = fs::read_to_string(format!("{}/index.tsx", board(&folder))).unwrap();
    let lines = page.lines().filter(|line| !line.trim().is_empty()).count();
    assert!(lines <= 25, "{lines}");
}

/// Posts texts until the connection ends, and notes those that the server has acknowledged.
fn post_until_the_end(mut connection: TcpStream, name: &str, acknowledged: &Mutex<Vec<String>>) {
    connection.set_read_timeout(Some(PATIENCE)).unwrap();
    for number in 0.. {
        let text = format!("post {name}-{number}.");
        let body = format!(r#"{{"body":"{text}"}}"#);
        let request = format!(
            "POST /post HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        if connection.write_all(request.as_bytes()).is_err() {
            return;
        }
        // The answer is the id of the row: a text in quotes.
        let mut answer = Vec::new();
        while !answer.ends_with(b"\"") {
            let mut part = [0; 4096];
            match connection.read(&mut part) {
                Ok(1..) if answer.len() > 100_000 => panic!("no answer to a post"),
                Ok(length @ 1..) => answer.extend_from_slice(&part[..length]),
                _ => return,
            }
        }
        assert!(answer.starts_with(b"HTTP/1.1 200 "), "{}", String::from_utf8_lossy(&answer));
        acknowledged.lock().unwrap().push(text);
    }
}

#[test]
fn keeps_every_acknowledged_post_after_kills() {
    let folder = Folder::new();
    let site = board(&folder);
    let page = format!("{site}/index.tsx");
    let text = fs::read_to_string(&page).unwrap();
    assert!(text.contains("newest(50)"));
    fs::write(&page, text.replace("newest(50)", "newest(50_000)")).unwrap();
    let acknowledged = Arc::new(Mutex::new(Vec::new()));
    for round in 1..=4 {
        let program = serve(&site);
        let count = || acknowledged.lock().unwrap().len();
        let first = count();
        let posters: Vec<_> = (0..4)
            .map(|poster| {
                let (name, acknowledged) = (format!("{round}-{poster}"), Arc::clone(&acknowledged));
                let connection = TcpStream::connect(program.address()).unwrap();
                thread::spawn(move || post_until_the_end(connection, &name, &acknowledged))
            })
            .collect();
        let (mut known, mut began) = (first, Instant::now());
        while known < first + 50 {
            assert!(began.elapsed() < PATIENCE, "the posts take too long");
            thread::yield_now();
            if count() > known {
                (known, began) = (count(), Instant::now());
            }
        }
        program.kill();
        for poster in posters {
            poster.join().unwrap();
        }
    }
    let page = serve(&site).connect().get("/");
    for text in &*acknowledged.lock().unwrap() {
        assert_eq!(page.text().matches(text.as_str()).count(), 1, "{text}");
    }
    // At most one post of each client was stored without an acknowledgment.
    let shown = page.text().matches("post ").count();
    let known = acknowledged.lock().unwrap().len();
    assert!((known..=known + 16).contains(&shown), "{shown} posts, {known} acknowledged");
}
