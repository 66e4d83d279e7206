//! Decides that each reply has its line in the access log, whoever made it.

use bine_pipeline::log::Writer;

use crate::house::{House, SCHEDULERS, settings};

/// A line was cut out of its date at the wrong places, and the panic took the reply with it: with
/// an access log nothing was answered.
#[test]
fn each_reply_has_one_line_however_it_was_made() {
    for scheduler in SCHEDULERS {
        let name = format!("bine-access-{}-{scheduler}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let house = House::with_log(settings(scheduler), Some(Writer::to_file(&path).unwrap()));
        let paths = ["/say/a", "/yield", "/work", "/page/300000", "/file", "/panic/work"];
        let mut peer = house.connect();
        for path in paths {
            peer.ask(path);
        }
        let mut faulty = house.connect();
        faulty.send("nonsense\r\n\r\n");
        assert_eq!(faulty.reply().to_string(), "400 close");
        house.stop();
        house.await_end();
        let lines = std::fs::read_to_string(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        let mut told: Vec<String> = lines.lines().map(shorten).collect();
        // Two connections, of which a pool has each on a thread of its own.
        let nonsense = told.iter().position(|line| line == "- 400 26");
        told.remove(nonsense.unwrap());
        let expected = [
            "GET /say/a HTTP/1.1 200 1",
            "GET /yield HTTP/1.1 200 5",
            "GET /work HTTP/1.1 200 4",
            "GET /page/300000 HTTP/1.1 200 0",
            "GET /file HTTP/1.1 200 9000000",
            "GET /panic/work HTTP/1.1 500 35",
        ];
        assert_eq!(told, expected, "{scheduler}");
    }
}

/// Request, status and length.
fn shorten(line: &str) -> String {
    let quoted: Vec<&str> = line.split('"').collect();
    format!("{}{}", quoted[1], quoted[2].trim_end())
}
