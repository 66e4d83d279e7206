//! Uploaded files that all visitors can view: run `cargo run --release --example uploads`, and
//! upload a picture.
//!
//! Browsers display pictures and text, and save files that could run as part of the application,
//! such as HTML and SVG.

use std::{fs, io};

use bine::prelude::*;

/// Must not be inside a folder served by `App::files`: browsers run scripts in the files of such a
/// folder.
const FOLDER: &str = "uploads";

#[page("/")]
fn files() -> Result<impl Respond, Error> {
    let names = names()?;
    Ok(html! {
        <h1>Files</h1>
        <ul>
            {for name in names { <li><a href={format!("/files/{name}")}>{name}</a></li> }}
        </ul>
        <form method="post" action="/files" enctype="multipart/form-data">
            <input type="file" name="file" aria-label="File" required> <button>Send</button>
        </form>
    }
    .with_title("Files"))
}

#[page(POST "/files")]
fn keep(file: Upload) -> Result<Response, Error> {
    // The extension determines the media type. The rest of the name is user input and is not used
    // for the path.
    let (_, ending) = file.file_name().rsplit_once('.').unwrap_or(("", "bin"));
    if !ending.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return Err(Error::bad_request("the name of the file has an unusual ending"));
    }
    file.save(format!("{FOLDER}/{}.{ending}", names()?.len() + 1))?;
    Ok(Response::see_other("/"))
}

#[page("/files/{name}")]
fn file(name: Path<Text>) -> Result<Response, Error> {
    // Only names of existing files are accepted, so no path can leave the folder.
    if !names()?.iter().any(|known| **known == **name) {
        return Err(Error::not_found("there is no such file"));
    }
    Response::file(format!("{FOLDER}/{name}"))
}

fn names() -> io::Result<Vec<String>> {
    let mut names: Vec<String> = fs::read_dir(FOLDER)?
        .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
        .collect::<io::Result<_>>()?;
    names.sort();
    Ok(names)
}

fn main() -> Exit {
    fs::create_dir_all(FOLDER)
        .expect("the folder for files can be created in the current directory");
    App::new().page(files).page(keep).page(file).run()
}
