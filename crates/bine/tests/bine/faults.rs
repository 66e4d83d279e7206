//! Handlers that panic or time out: the response, and the line in the log.

use crate::app::{on_each_scheduler, start};
use crate::harness::{Folder, KINDS};

#[test]
fn answers_panicking_handler_with_500_and_continues() {
    for scheduler in KINDS {
        let program = start(&["--scheduler", scheduler]);
        for page in ["/broken", "/broken/plain", "/broken/later"] {
            let mut peer = program.connect();
            let reply = peer.get(page);
            assert_eq!(
                (reply.status(), reply.header("Connection")),
                (500, Some("close")),
                "{page}"
            );
            assert!(reply.text().starts_with("Something went wrong here. It has been noted.\n"));
            peer.expect_closed();
        }
        assert_eq!(program.connect().get("/hello?name=a").text(), "<h1>Hello a</h1>");
        let errors = program.stop().errors;
        for (message, name) in [
            ("broken on purpose", "app::broken"),
            ("broken on a worker", "app::broken_worker"),
            ("broken after a while", "app::broken_later"),
        ] {
            assert!(errors.contains(message), "{scheduler}: {message}: {errors}");
            assert!(
                errors.contains(&format!("bine::{name} panicked; its peer got a 500")),
                "{errors}"
            );
        }
        assert!(errors.contains("tests/bine/app.rs:"), "the backtrace lacks file names: {errors}");
        assert_eq!(errors.matches("bine::app::fail").count(), 3, "{errors}");
    }
}

/// Regression: the text of a panic may contain input from the client and was logged unescaped. A
/// line break in it began a line that looked like one of ours, and an escape sequence reached the
/// terminal.
#[test]
fn escapes_client_input_in_panic_message_of_the_log() {
    let program = start(&[]);
    let words = "a%0Abine:%20error:%20forged%0D%1B%5B31m%0A";
    let reply = program.connect().get(&format!("/broken/with?words={words}"));
    assert_eq!(reply.status(), 500);
    let errors = program.stop().errors;
    let said = "\n  | a\n  | bine: error: forged\\r\\u{1b}[31m\n  | \n";
    assert!(errors.contains(said), "{errors}");
    assert!(!errors.contains("\nbine: error: forged"), "{errors}");
    assert!(!errors.contains('\u{1b}'), "{errors}");
}

#[test]
fn logs_panicking_handler_in_access_log() {
    for scheduler in KINDS {
        let folder = Folder::new();
        let log = folder.join("access.log");
        let program = start(&["--scheduler", scheduler, "--access-log", log.to_str().unwrap()]);
        let pages = ["/broken", "/broken/plain", "/broken/later"];
        for page in pages {
            assert_eq!(program.connect().get(page).status(), 500);
        }
        program.stop();
        let log = std::fs::read_to_string(log).unwrap();
        for page in pages {
            let line = format!("\"GET {page} HTTP/1.1\" 500 ");
            assert!(log.contains(&line), "{scheduler}: {page}: {log}");
        }
    }
}

#[test]
fn sends_earlier_pipelined_responses_before_panic() {
    on_each_scheduler(|program| {
        for page in ["/broken", "/broken/plain", "/broken/later"] {
            let mut peer = program.connect();
            peer.send("GET /hello?name=a HTTP/1.1\r\nHost: a\r\n\r\n".repeat(3));
            peer.send(format!("GET {page} HTTP/1.1\r\nHost: a\r\n\r\n"));
            for _ in 0..3 {
                assert_eq!(peer.reply().text(), "<h1>Hello a</h1>");
            }
            assert_eq!(peer.reply().status(), 500);
            peer.expect_closed();
        }
    });
}

#[test]
fn answers_slow_handler_with_504() {
    for scheduler in KINDS {
        let program = start(&["--scheduler", scheduler, "--handler-timeout", "50ms"]);
        let mut peer = program.connect();
        let reply = peer.get("/late");
        assert_eq!(
            (reply.status(), reply.header("Connection")),
            (504, Some("close")),
            "{scheduler}"
        );
        peer.expect_closed();
        assert_eq!(program.connect().get("/hello?name=a").text(), "<h1>Hello a</h1>");
        let errors = program.stop().errors;
        assert!(
            errors.contains("bine::app::late took longer than 50ms; its peer got a 504"),
            "{errors}"
        );
    }
}
