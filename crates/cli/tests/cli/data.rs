//! Claims about `bine data`: what it finds in a folder of tables, and what is left after a repair.

use std::fs;

use bine::store::{Error, Id, Options, Store, Table};

use crate::harness::Folder;
use crate::run;

#[derive(Table)]
struct Note {
    id: Id<Note>,
    text: String,
}

fn open(folder: &Folder) -> Result<Store, String> {
    let options = Options::new().table::<Note>();
    Store::open(folder.join("data"), options, &mut |_, _| {})
}

#[test]
fn damage_is_told_and_a_repair_keeps_what_can_be_read() {
    let folder = Folder::new();
    let data = folder.join("data");
    let path = data.to_str().unwrap();
    let absent = run(&["data", "check", path]);
    assert_eq!(absent.code, Some(1));
    assert!(absent.errors.contains("there is no folder"), "{}", absent.errors);
    let store = open(&folder).unwrap();
    for number in 0..100 {
        let note = || Note { id: Id::new(), text: format!("note {number}") };
        store.change(|change| change.insert(note())).wait().map_err(|error: Error| error).unwrap();
    }
    let busy = run(&["data", "check", path]);
    assert_eq!(busy.code, Some(1));
    assert!(busy.errors.contains("stop it"), "{}", busy.errors);
    drop(store);
    let sound = run(&["data", "check", path]);
    assert_eq!((sound.code, sound.output.ends_with("all is well\n")), (Some(0), true), "{sound:?}");

    let segment = fs::read_dir(&data).unwrap().map(|entry| entry.unwrap().path());
    let segment = segment.max_by_key(|path| fs::metadata(path).unwrap().len()).unwrap();
    let mut bytes = fs::read(&segment).unwrap();
    let place = bytes.windows(7).position(|window| window == b"note 42").unwrap();
    bytes[place] ^= 1;
    fs::write(&segment, bytes).unwrap();
    let refused = open(&folder).unwrap_err();
    assert!(refused.contains("`bine data repair`"), "{refused}");
    let damaged = run(&["data", "check", path]);
    assert_eq!((damaged.code, damaged.output.ends_with("damaged\n")), (Some(1), true));
    let repaired = run(&["data", "repair", path]);
    assert_eq!(repaired.code, Some(0), "{repaired:?}");
    assert!(repaired.output.contains("lost: records"), "{}", repaired.output);
    assert_eq!(run(&["data", "check", path]).code, Some(0));
    let store = open(&folder).unwrap();
    let notes: Vec<String> = store.read().all::<Note>().map(|note| note.text).collect();
    assert_eq!(notes.len(), 99, "{notes:?}");
    assert!(!notes.contains(&"note 42".to_owned()));
    assert_eq!(run(&["data", "chekc", path]).code, Some(2));
}
