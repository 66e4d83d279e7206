//! Files that visitors send to services: finds them among the arguments of a call, and gives a script
//! their content.

use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use bine_files::media_type;
use bine_script::{HostError, HostModule, Value};
use bine_tsx::{Field, Shape};

use super::call_state::CallState;
use super::folders::{AppFolder, PUBLIC};
use super::upload_set::UploadSet;
use crate::arguments::Upload;
use crate::blocking::blocking;
use crate::inert::is_active;
use crate::service::{ArgumentError, CallArguments};
use crate::visitor_message::VisitorMessage;

/// The module `bine:internal/forms`: the words of forms.
pub(super) const WORDS: &str = include_str!("words/forms.js");

/// Bytes of a file that pass to the script at once, below the limit of a value.
const PART: u64 = 2 << 20;
/// Folders and the file in a path to save to.
const MAX_STEPS: usize = 8;
/// Bytes of one name in such a path.
const MAX_NAME: usize = 100;

/// Whether the argument of a service has a file.
pub(super) fn has_upload(shape: &Shape) -> bool {
    matches!(shape, Shape::Object(fields) if fields.iter().any(is_upload))
}

/// Whether the value of a field is a file or a list of files.
pub(super) fn is_upload(field: &Field) -> bool {
    match &field.shape {
        Shape::Upload => true,
        Shape::Array(item) => **item == Shape::Upload,
        _ => false,
    }
}

/// Adds the files of a call to the values of its arguments, and keeps their content in `set`.
///
/// # Errors
///
/// Those that are missing, and files under the names of other arguments.
pub(super) fn read(
    given: &CallArguments,
    shape: &Shape,
    set: &UploadSet,
) -> Result<Vec<(String, Value)>, Vec<ArgumentError>> {
    let fields: &[Field] = if let Shape::Object(fields) = shape { fields } else { &[] };
    let (mut values, mut wrong) = (Vec::new(), Vec::new());
    for field in fields {
        let name = &field.name;
        let mut files = given.files().iter().filter(|(own, _)| own == name).map(|(_, file)| file);
        if !is_upload(field) {
            if files.next().is_some() {
                let reason = "is no file: the service takes another value".to_owned();
                wrong.push(ArgumentError::new(name.clone(), reason));
            }
            continue;
        }
        if has_other_value(given, name) {
            wrong.push(ArgumentError::new(name.clone(), VisitorMessage::NoFileForm {}));
        } else if matches!(field.shape, Shape::Array(_)) {
            let all: Vec<Value> = files.map(|file| set.add(file)).collect();
            if !all.is_empty() || !field.is_optional {
                values.push((name.clone(), Value::Array(all)));
            }
        } else if let Some(file) = files.next() {
            values.push((name.clone(), set.add(file)));
        } else if !field.is_optional {
            let missing = VisitorMessage::MissingFrom { place: "form".to_owned() };
            wrong.push(ArgumentError::new(name.clone(), missing));
        }
    }
    if wrong.is_empty() { Ok(values) } else { Err(wrong) }
}

/// Whether a call has a value in place of a file. A form without a file has an empty text.
fn has_other_value(given: &CallArguments, name: &str) -> bool {
    match given.texts() {
        Some(texts) => texts.iter().any(|(own, text)| own == name && !text.is_empty()),
        None => given.has(name),
    }
}

/// The functions of [`WORDS`]:
///
/// | name | arguments | result |
/// |---|---|---|
/// | `read` | number of the file, offset | the next part of the content |
/// | `save` | number of the file, path | a promise |
pub(super) fn host_module(app: &AppFolder) -> HostModule {
    let public = app.folder.join(PUBLIC);
    HostModule::new("bine:internal/uploads")
        .function("read", |call| {
            let upload = CallState::of(call)?.uploads().find(call.number(0)?)?;
            let from = call.number(1)?;
            let is_offset = from >= 0.0 && from.fract() == 0.0;
            if !is_offset {
                return Err(HostError::Type("an offset is a whole number".to_owned()));
            }
            let content = upload.content().map_err(|error| HostError::Other(error.to_string()))?;
            #[expect(clippy::cast_sign_loss, reason = "it was checked above")]
            let from = (from as u64).min(upload.length());
            let end = from.saturating_add(PART).min(upload.length());
            Ok(Value::Bytes(content[from as usize..end as usize].to_vec()))
        })
        .async_function("save", move |call| {
            let state = CallState::of(call)?;
            let upload = state.uploads().find(call.number(0)?)?;
            if state.is_changing() {
                return Err(HostError::Other(
                    "`save` writes a file, which a transaction cannot take back: make the service async, and change tables in `await change(() => ..)`".to_owned(),
                ));
            }
            let path = call.text(1)?;
            let target = target(&public, &path).map_err(HostError::Type)?;
            let public = public.clone();
            Ok(async move {
                let saved = blocking(move || save(&upload, &public, &target)).await;
                let told = |error: io::Error| HostError::Other(told(&path, &error));
                saved.map(|()| Value::Undefined).map_err(told)
            })
        })
}

fn told(path: &str, error: &io::Error) -> String {
    match error.kind() {
        ErrorKind::AlreadyExists => {
            format!("there is a file `{path}` already: choose another name, such as one with an id")
        }
        ErrorKind::NotADirectory => {
            format!("`{path}` cannot be saved, because a part of this path is a file")
        }
        ErrorKind::NotFound => format!(
            "the file `{path}` cannot be saved, because the application has no folder `{PUBLIC}`: create it, and start the server again"
        ),
        _ => format!("the file `{path}` cannot be saved: {error}"),
    }
}

fn save(upload: &Upload, public: &Path, target: &Path) -> io::Result<()> {
    if !public.is_dir() {
        return Err(ErrorKind::NotFound.into());
    }
    if let Some(folder) = target.parent() {
        std::fs::create_dir_all(folder).map_err(|error| match error.kind() {
            // A part of the path is a file.
            ErrorKind::AlreadyExists => ErrorKind::NotADirectory.into(),
            _ => error,
        })?;
    }
    upload.save(target)
}

/// The place of a path in the folder of public files.
///
/// # Errors
///
/// The path leads elsewhere, or to a file that a browser would run as a part of the site.
fn target(public: &Path, path: &str) -> Result<PathBuf, String> {
    let steps: Vec<&str> = path.split('/').collect();
    let is_name = |step: &&str| {
        (1..=MAX_NAME).contains(&step.len())
            && !step.starts_with('.')
            && step.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
    };
    if steps.len() > MAX_STEPS || !steps.iter().all(is_name) {
        return Err(format!(
            "`save` takes a path in the folder `{PUBLIC}`, such as \"pictures/1.png\": names of letters, digits, `-`, `_` and `.`, with `/` between them"
        ));
    }
    // The server sends such a file in place of the one without the ending.
    let name = path.to_ascii_lowercase();
    if [".br", ".gz", ".zst"].iter().any(|ending| name.ends_with(ending)) {
        return Err("`save` writes no compressed variant of a file, because it would be sent in place of a file of the site: choose a name with another ending, such as \"1.png\"".to_owned());
    }
    let kind = media_type(path);
    if is_active(&kind) {
        return Err(format!(
            "`save` writes no file that a browser opens as {kind}, because it would run as a part of the site: choose a name with the ending of a picture, a sound, a video or a text, such as \"1.png\""
        ));
    }
    Ok(public.join(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn saves_only_inert_files_below_the_public_folder() {
        let public = Path::new("/site/public");
        for path in ["1.png", "pictures/a_b-c.jpeg", "a/b.mp3", "notes.txt", "data.csv", "x.bin"] {
            assert_eq!(target(public, path), Ok(public.join(path)), "{path}");
        }
        let long = format!("{}.png", "a".repeat(100));
        let deep = "a/".repeat(8) + "b.png";
        for path in [
            "",
            "/1.png",
            "../1.png",
            "a/../1.png",
            "a//1.png",
            ".hidden.png",
            "a/.x/1.png",
            "a b.png",
            "a\\b.png",
            "a\0.png",
            "1.png/",
            &long,
            &deep,
        ] {
            let told = target(public, path).unwrap_err();
            assert!(
                told.starts_with("`save` takes a path in the folder `public`"),
                "{path}: {told}"
            );
        }
        for path in ["app.js.br", "style.css.BR", "x.zst", "x.svg.gz"] {
            let told = target(public, path).unwrap_err();
            assert!(told.starts_with("`save` writes no compressed variant"), "{path}: {told}");
        }
        for path in ["1.html", "1.svg", "1.js", "a.xhtml", "a.xml", "a.css", "a.pdf"] {
            let told = target(public, path).unwrap_err();
            assert!(told.contains("a part of the site"), "{path}: {told}");
        }
    }
}
