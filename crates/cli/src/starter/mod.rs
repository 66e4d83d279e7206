//! The commands `bine new` and `bine types`: write the files of an application in TSX.

mod files;
mod name;

use std::ffi::OsString;
use std::fs;
use std::io::{self, ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use bine::Exit;

use files::{AppTemplate, TEMPLATES, TSCONFIG, TYPES, TYPES_FOLDER};

const NEW: &str = "\
Usage: bine new NAME [--template TEMPLATE]

Writes an application in TSX into the new folder NAME: a page, a layout, a style sheet, the settings
of the application, and types for editors. The last part of NAME is the name of the application.

  --template TEMPLATE  board, a live message board (default), or blank, an empty page

  bine new board
  bine serve board --development on";

const TYPES_USAGE: &str = "\
Usage: bine types [DIR]

Writes the types of the words of `bine` and of markup into DIR/.bine/types, where editors find them,
and DIR/tsconfig.json if there is none. DIR is the folder of a site, by default the current one.
Repeat the command after an update of `bine`, and in a new copy of a site.";

/// Runs `bine new` with the arguments after `new`.
pub(crate) fn new(arguments: &[OsString]) -> Exit {
    let mut template = None;
    let mut folders = Vec::new();
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        let text = argument.to_str().unwrap_or_default();
        match text.split_once('=').unwrap_or((text, "")) {
            ("--help" | "-h", _) => return print(NEW),
            ("--template", "") if text == "--template" => match rest.next() {
                Some(name) => template = Some(name.to_string_lossy().into_owned()),
                None => return usage("--template needs the name of a template", NEW),
            },
            ("--template", name) => template = Some(name.to_owned()),
            _ if text.starts_with('-') => {
                return usage(&format!("`bine new` has no option {text}"), NEW);
            }
            _ => folders.push(PathBuf::from(argument)),
        }
    }
    let [folder] = folders.as_slice() else {
        return usage("`bine new` needs one name, such as `bine new board`", NEW);
    };
    let template = match find(template.as_deref().unwrap_or(TEMPLATES[0].name)) {
        Ok(template) => template,
        Err(message) => return usage(&message, NEW),
    };
    match create(folder, template) {
        Ok(()) => {}
        Err(Problem::Usage(message)) => return usage(&message, NEW),
        Err(Problem::Failure(message)) => return Exit::failure(format!("bine: {message}")),
    }
    let shown = shell_word(&folder.to_string_lossy());
    print(&format!("wrote {shown}; start it:\n\n  bine serve {shown} --development on"))
}

/// Runs `bine types` with the arguments after `types`.
pub(crate) fn types(arguments: &[OsString]) -> Exit {
    let words: Vec<_> = arguments.iter().map(|word| word.to_string_lossy()).collect();
    if words.iter().any(|word| matches!(&**word, "--help" | "-h")) {
        return print(TYPES_USAGE);
    }
    if let Some(option) = words.iter().find(|word| word.starts_with('-')) {
        return usage(&format!("`bine types` has no option {option}"), TYPES_USAGE);
    }
    let folder = match arguments {
        [] => Path::new("."),
        [folder] => Path::new(folder),
        _ => return usage("`bine types` needs at most one folder", TYPES_USAGE),
    };
    if !folder.is_dir() {
        let shown = folder.display();
        return Exit::failure(format!("bine: {shown} is no folder; name the folder of a site"));
    }
    match refresh(folder) {
        Ok(()) => print(&format!("wrote {}", folder.join(TYPES_FOLDER).display())),
        Err(message) => Exit::failure(format!("bine: {message}")),
    }
}

/// Why a folder was not written.
#[derive(Debug)]
enum Problem {
    /// The command must be written differently.
    Usage(String),
    /// The system reports an error, or the folder is in use.
    Failure(String),
}

impl From<String> for Problem {
    fn from(message: String) -> Self {
        Self::Failure(message)
    }
}

/// The template with this name.
fn find(name: &str) -> Result<&'static AppTemplate, String> {
    if let Some(template) = TEMPLATES.iter().find(|template| template.name == name) {
        return Ok(template);
    }
    let names: Vec<&str> = TEMPLATES.iter().map(|template| template.name).collect();
    let hint = name::nearest(&names, name).map(|near| format!("; did you mean `{near}`?"));
    let all = names.join(", ");
    Err(format!("there is no template `{name}`{} (all: {all})", hint.unwrap_or_default()))
}

/// Writes an application into a folder that does not exist or is empty.
fn create(folder: &Path, template: &AppTemplate) -> Result<(), Problem> {
    let name = folder.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    name::check(name).map_err(Problem::Usage)?;
    let shown = folder.display();
    match fs::read_dir(folder).map(|mut entries| entries.next().is_some()) {
        Ok(true) => Err(format!("{shown} is not empty; choose another name, or empty it first"))?,
        Ok(false) => {}
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) if error.kind() == ErrorKind::NotADirectory => {
            Err(format!("{shown}, or a part of its path, is a file; choose another name"))?;
        }
        Err(error) => Err(format!("{shown}: {error}"))?,
    }
    for (path, text) in template.files {
        write(&folder.join(path), text)?;
    }
    let title = name::title(name);
    write(&folder.join("app.toml"), &format!("title = \"{title}\"\n"))?;
    Ok(refresh(folder)?)
}

/// Writes the types, and the configuration of TypeScript if there is none.
fn refresh(folder: &Path) -> Result<(), String> {
    for (name, text) in TYPES {
        write(&folder.join(TYPES_FOLDER).join(name), text)?;
    }
    let configuration = folder.join("tsconfig.json");
    if configuration.exists() {
        return Ok(());
    }
    write(&configuration, TSCONFIG)
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    let parent = path.parent().unwrap_or(path);
    let done = fs::create_dir_all(parent).and_then(|()| fs::write(path, text));
    done.map_err(|error| format!("cannot write {}: {error}", path.display()))
}

/// A word as a shell reads it.
fn shell_word(word: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./".contains(letter);
    if word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

fn usage(message: &str, usage: &str) -> Exit {
    Exit::usage(format!("bine: {message}\n\n{usage}"))
}

fn print(text: &str) -> Exit {
    match writeln!(io::stdout(), "{text}") {
        Ok(()) => Exit::success(),
        Err(error) => Exit::failure(format!("bine: cannot write to standard output: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_nearest_template() {
        let found = |name: &str| find(name).map(|template| template.name);
        assert_eq!(found("board"), Ok("board"));
        assert_eq!(found("blank"), Ok("blank"));
        let message = "there is no template `bord`; did you mean `board`? (all: board, blank)";
        assert_eq!(found("bord"), Err(message.to_owned()));
        let message = "there is no template `shop` (all: board, blank)";
        assert_eq!(found("shop"), Err(message.to_owned()));
    }

    #[test]
    fn quotes_a_word_for_the_shell() {
        assert_eq!(shell_word("sites/board"), "sites/board");
        assert_eq!(shell_word("it's a/board"), r"'it'\''s a/board'");
    }

    #[test]
    fn writes_the_board_in_few_lines() {
        let board = find("board").unwrap();
        let (_, page) = board.files.iter().find(|(path, _)| *path == "index.tsx").unwrap();
        let count = page.lines().filter(|line| !line.trim().is_empty()).count();
        assert!(count <= 25, "{count} lines");
    }

    #[test]
    fn writes_each_file_in_ascii() {
        let files = TEMPLATES.iter().flat_map(|template| template.files).chain(&TYPES);
        for (path, text) in files {
            assert!(text.is_ascii() && text.ends_with('\n'), "{path}");
        }
    }
}
