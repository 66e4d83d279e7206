//! Tests of `bine data`: checks and repairs of damaged folders, dumps and loads.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use bine::store::{Error, Id, Options, Store, Table};

use crate::harness::{Folder, Program};
use crate::{bine, run};

#[derive(Table)]
struct Note {
    id: Id<Note>,
    text: String,
}

/// Returns the standard output of a command that must succeed.
#[track_caller]
fn output_of(arguments: &[&str]) -> String {
    let ended = run(arguments);
    assert_eq!((ended.code, ended.errors.as_str()), (Some(0), ""), "{arguments:?}");
    ended.output
}

fn open(folder: &Folder) -> Result<Store, String> {
    let options = Options::new().table::<Note>();
    Store::open(folder.join("data"), options, &mut |_, _| {})
}

#[test]
fn reports_damage_and_repairs_what_is_readable() {
    let folder = Folder::new();
    let data = folder.join("data");
    let path = data.to_str().unwrap();
    let absent = run(&["data", "check", path]);
    assert_eq!(absent.code, Some(1));
    assert!(absent.errors.contains("there is no folder"), "{}", absent.errors);
    let store = open(&folder).unwrap();
    for number in 0..100 {
        let note = || Note { id: Id::unassigned(), text: format!("note {number}") };
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

#[test]
fn dumps_and_loads_tables_that_a_program_opens() {
    let folder = Folder::new();
    let [data, copy] = ["data", "copy"].map(|name| folder.join(name).to_str().unwrap().to_owned());
    let store = open(&folder).unwrap();
    for number in 0..3 {
        let note = || Note { id: Id::unassigned(), text: format!("note {number}") };
        store.insert(note()).wait().unwrap();
    }
    store.close();
    let dump = run(&["data", "dump", &data]);
    assert_eq!((dump.code, dump.output.lines().count()), (Some(0), 6), "{dump:?}");
    let file = folder.write("notes.jsonl", dump.output.as_bytes());
    let file = file.to_str().unwrap();
    let loaded = run(&["data", "load", &copy, file]);
    assert_eq!((loaded.code, &*loaded.output), (Some(0), "1 table, 3 rows loaded\n"), "{loaded:?}");
    assert_eq!(run(&["data", "dump", &copy, "--table", "note"]).output, dump.output);

    let again = run(&["data", "load", &copy, file]);
    assert_eq!((again.code, again.errors.contains("has 3 rows already")), (Some(1), true));
    let changed =
        dump.output.replace("note 1", "note one").replacen("{\"text\":\"note 0\"}", "null", 1);
    folder.write("notes.jsonl", changed.as_bytes());
    let merged = run(&["data", "load", &copy, file, "--merge"]);
    assert_eq!(merged.output, "1 table, 2 rows loaded, 1 removed\n", "{merged:?}");
    fs::remove_dir_all(&data).unwrap();
    // A server keeps its tables in a subfolder.
    fs::rename(Path::new(&copy).join("journal"), &data).unwrap();
    let store = open(&folder).unwrap();
    let notes: Vec<String> = store.read().all::<Note>().map(|note| note.text).collect();
    assert_eq!(notes, ["note one", "note 2"]);
    store.close();

    let compacted = run(&["data", "compact", &data]);
    assert!(compacted.output.ends_with("nothing to gain\n"), "{compacted:?}");
}

#[test]
fn reports_invalid_input_with_position() {
    let folder = Folder::new();
    let path = folder.join("data");
    let data = path.to_str().unwrap();
    let file = folder.write("wrong.jsonl", b"{\"bine\":\"tables\",\"version\":1}\n{\"table\":7}\n");
    let wrong = run(&["data", "load", data, file.to_str().unwrap()]);
    let expected =
        "bine: line 2, column 10: expected a text, which begins with `\"`\nnothing was loaded\n";
    assert_eq!((wrong.code, &*wrong.errors, path.exists()), (Some(1), expected, false));
    let absent = run(&["data", "load", data, "absent.jsonl"]);
    assert!(absent.errors.contains("cannot read absent.jsonl: No such file"), "{}", absent.errors);
    fs::create_dir(&path).unwrap();
    let empty = run(&["data", "dump", data]);
    assert_eq!(empty.errors, format!("bine: there are no tables in {data}\n"));
    let nowhere = run(&["data", "dump", "nowhere"]);
    assert_eq!(nowhere.errors, "bine: there is no folder nowhere\n");
    drop(open(&folder).unwrap());
    let unknown = run(&["data", "dump", data, "--table", "nte"]);
    assert_eq!(unknown.errors, "bine: there is no table `nte`; there are `note`\n");
    fs::create_dir(folder.join("server")).unwrap();
    fs::rename(&path, folder.join("server/journal")).unwrap();
    let server = folder.join("server").to_str().unwrap().to_owned();
    assert_eq!(run(&["data", "check", &server]).code, Some(0));
    for wrong in
        [&["data", "dump"][..], &["data", "dump", "a", "b"], &["data", "check", "a", "--merge"]]
    {
        let ended = run(wrong);
        assert_eq!(
            (ended.code, ended.errors.contains("Usage: bine data")),
            (Some(2), true),
            "{ended:?}"
        );
    }
    for word in ["backup", "dump", "load", "compact", "check", "repair"] {
        let help = run(&["data", word, "--help"]);
        assert!(help.output.starts_with(&format!("Usage: bine data {word} FOLDER")), "{help:?}");
    }
}

#[test]
fn backs_up_the_folder_of_a_running_server_and_restores_it() {
    let folder = Folder::new();
    let [data, backup, copy] =
        ["data", "backup", "copy"].map(|name| folder.join(name).to_str().unwrap().to_owned());
    let mut command = bine(&["--listen", "127.0.0.1:0", "--data", &data]);
    let server = Program::start(&mut command);
    let post = |text: &str| {
        let fields = "Content-Type: application/x-www-form-urlencoded\r\n";
        let form = format!("forum=garden&body={text}");
        let reply = server.connect().request("POST", "/board/post", fields, &form);
        assert_eq!(reply.status(), 204, "{reply:?}");
    };
    post("first");
    let first = output_of(&["data", "backup", &data, &backup]);
    assert!(first.contains(" new changes, up to change "), "{first}");
    let change = first.split("up to change ").nth(1).unwrap().split(';').next().unwrap();
    post("second");
    let second =
        output_of(&["data", "backup", &data, &backup, "--link", "--keep", "30", "--share=100"]);
    assert!(second.contains("new changes, up to change "), "{second}");
    let busy = run(&["data", "restore", &backup, &data, "--replace"]);
    assert!(busy.errors.contains("stop it first"), "{busy:?}");
    server.stop();
    fs::write(Path::new(&data).join("session-keys"), "keys").unwrap();
    fs::create_dir(Path::new(&data).join("uploads")).unwrap();
    let third = output_of(&["data", "backup", &data, &backup]);
    let expected = format!(
        "keys and certificates: region-key, session-keys\nnot in the backup: {data}/uploads\n"
    );
    assert!(third.ends_with(&expected), "{third}");
    let checked = output_of(&["data", "check", &backup]);
    assert!(checked.contains("can be restored up to any change from 1 to "), "{checked}");
    assert!(checked.ends_with("all is well\n"), "{checked}");

    let restored = output_of(&["data", "restore", &backup, &copy]);
    assert!(restored.starts_with("restored all changes up to change "), "{restored}");
    // A warning states that a dump has no channels.
    let dump = |folder: &str| run(&["data", "dump", folder]).output;
    assert_eq!(dump(&copy), dump(&data));
    assert!(dump(&copy).contains("second"));
    for key in ["session-keys", "region-key"] {
        let [of_data, of_copy] = [&data, &copy].map(|folder| Path::new(folder).join(key));
        assert_eq!(fs::read(&of_copy).unwrap(), fs::read(of_data).unwrap());
        assert_eq!(fs::metadata(of_copy).unwrap().mode() & 0o777, 0o600);
    }
    let again = run(&["data", "restore", &backup, &copy]);
    assert!(again.errors.contains("has data already"), "{again:?}");
    fs::write(Path::new(&copy).join("region-key"), [7; 16]).unwrap();
    let earlier = output_of(&["data", "restore", &backup, &copy, "--at", change, "--replace"]);
    assert!(earlier.contains("\ndropped: changes "), "{earlier}");
    assert!(earlier.contains("/copy/replaced-journal\n"), "{earlier}");
    assert!(dump(&copy).contains("first") && !dump(&copy).contains("second"));
    let aside = Path::new(&copy).join("replaced-region-key");
    assert_eq!(fs::read(aside).unwrap(), [7; 16]);
    let server = Program::start(&mut bine(&["--listen", "127.0.0.1:0", "--data", &copy]));
    assert!(server.connect().get("/board/garden").text().contains("first"));
    server.stop();

    let diverged = run(&["data", "backup", &copy, &backup]);
    assert!(diverged.errors.contains("choose an empty folder"), "{diverged:?}");
    let early =
        run(&["data", "restore", &backup, &data, "--at", "2001-01-01T00:00:00Z", "--replace"]);
    assert!(early.errors.contains("the first change was made later than"), "{early:?}");
    assert_eq!(dump(&data), {
        fs::remove_dir_all(&copy).unwrap();
        output_of(&["data", "restore", &backup, &copy, "--at", "2999-01-01T00:00:00Z"]);
        dump(&copy)
    });
}

#[test]
fn refuses_folders_and_options_that_do_not_fit_a_backup() {
    let folder = Folder::new();
    let [data, backup, copy] =
        ["data", "backup", "copy"].map(|name| folder.join(name).to_str().unwrap().to_owned());
    drop(open(&folder).unwrap());
    output_of(&["data", "backup", &data, &backup]);
    for (arguments, message) in [
        (&["data", "restore", &backup, &copy, "--at", "noon"][..], "a moment is written in UTC"),
        (&["data", "backup", &data, &backup, "--keep", "x"], "it must be a number of days"),
        (&["data", "backup", &data, &backup, "--share", "0"], "a percentage from 1 to 100"),
        (&["data", "backup", "nowhere", &backup], "there are no tables in nowhere"),
        (&["data", "dump", &backup], "is a backup"),
        (&["data", "repair", &backup], "is a backup"),
        (&["data", "restore", &data, &copy, "--replace"], "is no backup"),
        (&["data", "restore", &backup, &backup, "--replace"], "is a backup"),
    ] {
        let ended = run(arguments);
        assert_eq!(ended.code, Some(1), "{ended:?}");
        assert!(ended.errors.contains(message), "{ended:?}");
    }
}

#[test]
fn reports_a_damaged_backup() {
    let folder = Folder::new();
    let [data, backup, copy] =
        ["data", "backup", "copy"].map(|name| folder.join(name).to_str().unwrap().to_owned());
    let store = open(&folder).unwrap();
    for number in 0..3 {
        store.insert(Note { id: Id::unassigned(), text: format!("note {number}") }).wait().unwrap();
    }
    // The store is open, as that of a running server.
    output_of(&["data", "backup", &data, &backup]);
    let segment = Path::new(&backup).join("journal-0000000000000001.log");
    let mut bytes = fs::read(&segment).unwrap();
    let place = bytes.windows(6).position(|window| window == b"note 2").unwrap();
    bytes[place] ^= 1;
    fs::write(&segment, bytes).unwrap();
    let checked = run(&["data", "check", &backup]);
    assert_eq!(
        (checked.code, checked.output.ends_with("damaged\n")),
        (Some(1), true),
        "{checked:?}"
    );
    let refused = run(&["data", "restore", &backup, &copy]);
    assert!(refused.errors.contains("Nothing was restored"), "{refused:?}");
    assert!(!Path::new(&copy).join("journal").exists());
    let earlier = output_of(&["data", "restore", &backup, &copy, "--at", "3"]);
    assert!(earlier.contains("up to change 3"), "{earlier}");
    assert_eq!(output_of(&["data", "dump", &copy]).matches("note ").count(), 2);
}
