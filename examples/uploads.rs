//! Files that visitors send, and that others see: `cargo run --release --example uploads`, and send it a picture.
//!
//! Browsers show pictures and text, and save what could run as a part of the application, such as HTML and SVG.

use std::{fs, io};

use bine::prelude::*;

/// No folder that `App::files` serves may contain it: browsers run what is in such a folder.
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
    // The ending says what the file is. The rest of the name is the visitor's word, and names no file here.
    let (_, ending) = file.file_name().rsplit_once('.').unwrap_or(("", "bin"));
    if !ending.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return Err(Error::bad_request("the name of the file has an unusual ending"));
    }
    file.save(format!("{FOLDER}/{}.{ending}", names()?.len() + 1))?;
    Ok(Response::see_other("/"))
}

#[page("/files/{name}")]
fn file(name: Path<Text>) -> Result<Response, Error> {
    // A name of the folder's own is no path that leads out of it.
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
    fs::create_dir_all(FOLDER).expect("files are kept below the folder in which this is started");
    App::new().page(files).page(keep).page(file).run()
}
