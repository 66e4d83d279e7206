//! Validates the pages of the demo.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::program::Program;
use super::{curl, work_folder};
use crate::report::Tally;
use crate::{process, tools};

/// Reads every page of the demo as HTML and as XML.
pub(super) fn validate(tally: &mut Tally, demo: &Program) {
    tally.check("html-validate finds no error in the demo's pages", html(demo));
    tally.check("expat reads the demo's pages as XML", xml(demo));
}

fn html(demo: &Program) -> Result<()> {
    let files = fetch(demo, "text/html", "html")?;
    let mut validator = Command::new(tools::html_validate());
    validator.args(["--preset", "standard,a11y"]).args(files);
    succeed(&mut validator)
}

/// An XML parser stops at the first error.
fn xml(demo: &Program) -> Result<()> {
    const READ: &str = "import sys, xml.parsers.expat as expat\n\
        for file in sys.argv[1:]:\n    \
            expat.ParserCreate(namespace_separator=' ').ParseFile(open(file, 'rb'))";
    let files = fetch(demo, "application/xhtml+xml", "xhtml")?;
    succeed(Command::new("python3").args(["-c", READ]).args(files))
}

fn succeed(command: &mut Command) -> Result<()> {
    let output = command
        .output()
        .with_context(|| format!("cannot start {}", process::command_line(command)))?;
    let text = [output.stdout, output.stderr].concat();
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&text));
    Ok(())
}

/// Writes each linked page, and a missing one, into a file.
fn fetch(demo: &Program, media_type: &str, extension: &str) -> Result<Vec<PathBuf>> {
    let folder = work_folder().join("pages");
    fs::create_dir_all(&folder)?;
    curl(&["--data", "forum=garden", "--data", "body=<b>", &demo.url("/board/post")])?;
    let mut targets = vec!["/".to_owned(), "/missing".to_owned()];
    let mut files = Vec::new();
    while let Some(target) = targets.get(files.len()) {
        let answer = demo.ask_with("GET", target, &format!("Accept: {media_type}\r\n"))?;
        let expected = Some(format!("{media_type}; charset=utf-8"));
        ensure!(answer.field("Content-Type") == expected, "{target}: {answer}");
        let file = folder.join(format!("{}.{extension}", files.len()));
        fs::write(&file, answer.body())?;
        files.push(file);
        let page = String::from_utf8_lossy(answer.body()).into_owned();
        for link in page.split("href=\"").skip(1) {
            let link = link.split(['"', '#']).next().unwrap_or_default();
            // Links to files have an extension; links to pages do not.
            if link.starts_with('/')
                && !link.contains('.')
                && !targets.iter().any(|one| one == link)
            {
                targets.push(link.to_owned());
            }
        }
    }
    ensure!(files.len() > 10, "only {} pages were found", files.len());
    Ok(files)
}
