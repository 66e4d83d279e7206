//! The servlet port of the auction for Tomcat: compiles it, and checks that it sends the bytes of the
//! example.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use crate::auction::Auction;
use crate::emulator::page_client::PageClient;
use crate::emulator::script::Request;
use crate::rubis::{Mix, PageSeen, Step, Walk};
use crate::servers::{Running, free_port};
use crate::tomcat::{self, TomcatSetting};
use crate::tools::{Workspace, output, require};

/// The compared sessions, of 51 pages on average.
const WALKS: u64 = 20;
/// The data of the comparison: a thousand users.
const COMPARED: Auction = Auction { scale: 0.001, delay: 0, hashes: 0 };
const USERS: u64 = 1000;
/// The bytes shown before and after a difference.
const AROUND: usize = 60;

/// The compiled application.
pub(super) struct ServletPort {
    folder: PathBuf,
    /// The folder of the example, whose words and images the servlet reads.
    source: PathBuf,
    look: PageLook,
}

/// The names that Bine adds to the pages of the example. They depend on the example's style sheet.
#[derive(Debug, PartialEq)]
struct PageLook {
    /// The suffix of each class.
    suffix: String,
    /// The link to the style sheet.
    sheet: String,
}

impl ServletPort {
    /// Compiles the servlet and compares it with the example, which must be built.
    pub(super) fn open(workspace: &Workspace) -> Result<Self> {
        tomcat::require_tomcat()?;
        require("javac", "default-jdk-headless")?;
        let folder = workspace.target.join("bench/auction-servlet");
        compile(&workspace.root.join("bench/peers/auction"), &folder)?;
        let port = free_port()?;
        let words = COMPARED.bine(workspace, port);
        let bine = Running::start(&words, port, "/", &workspace.work.join("auction.log"))?;
        let (_, home) = PageClient::new(port).ask(&Request::get("/"))?;
        let look = PageLook::of(&String::from_utf8_lossy(&home))?;
        let own = Self { folder, source: workspace.root.join("examples/auction"), look };
        let setting = TomcatSetting { port: free_port()?, threads: 20, idle: 20_000, secure: None };
        let tomcat = own.start(workspace, &setting, COMPARED)?;
        let pages = compare([bine.port, tomcat.port])
            .context("Tomcat's pages differ from Bine's: change bench/peers/auction")?;
        eprintln!("{pages} pages of Tomcat have the bytes of Bine's");
        bine.stop()?;
        drop(tomcat);
        Ok(own)
    }

    /// Starts Tomcat with this data.
    pub(super) fn start(
        &self,
        workspace: &Workspace,
        setting: &TomcatSetting,
        auction: Auction,
    ) -> Result<Running> {
        let base = workspace.work.join(format!("tomcat-{}", setting.port));
        tomcat::write_base(workspace, &base, setting, Some(&self.folder))?;
        let options = [
            format!("-Dauction.source={}", self.source.display()),
            format!("-Dauction.scale={}", auction.scale),
            format!("-Dauction.delay={}", auction.delay),
            format!("-Dauction.hashes={}", auction.hashes),
            format!("-Dauction.suffix={}", self.look.suffix),
            format!("-Dauction.sheet={}", self.look.sheet),
        ];
        let words = tomcat::command(&base, &options);
        Running::start(&words, setting.port, "/", &base.join("log"))
            .context("Tomcat did not start with the servlet")
    }
}

impl PageLook {
    fn of(home: &str) -> Result<Self> {
        let between = |before: &str, after: &str| {
            let rest = home.split_once(before)?.1;
            Some(rest.split_once(after)?.0.to_owned())
        };
        let found = between("</title>", "</head>").zip(between("class=\"actions", "\""));
        let (sheet, suffix) = found.context("the home page of the auction has no style sheet")?;
        Ok(Self { suffix, sheet })
    }
}

/// Compiles all classes of `source` into an application in `folder`.
fn compile(source: &Path, folder: &Path) -> Result<()> {
    let settings = folder.join("WEB-INF");
    let classes = settings.join("classes");
    fs::create_dir_all(&classes)?;
    fs::copy(source.join("web.xml"), settings.join("web.xml"))?;
    let mut command = Command::new("javac");
    command.args(["-Xlint:all", "-Werror", "-cp", &tomcat::servlet_library(), "-d"]).arg(classes);
    for entry in fs::read_dir(source)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "java") {
            command.arg(path);
        }
    }
    output(&mut command)?;
    Ok(())
}

/// Walks through both servers with the same sessions, and compares all pages. Returns their number.
fn compare(ports: [u16; 2]) -> Result<u64> {
    let [mut one, mut other] = ports.map(PageClient::new);
    for path in ["/logo.svg", "/bid.svg"] {
        let request = Request::get(path);
        ensure!(one.ask(&request)? == other.ask(&request)?, "{path} has different bytes");
    }
    let mut pages = 0;
    for seed in 1..=WALKS {
        let mut walks = [(); 2].map(|()| Walk::new(seed, Mix::Bidding).with_users(USERS));
        let mut seen = [(); 2].map(|()| PageSeen::default());
        loop {
            let [first, second] = &mut walks;
            let requests = match (first.next(&seen[0]), second.next(&seen[1])) {
                (Step::Page(first), Step::Page(second)) => [first, second],
                (Step::End, Step::End) => break,
                _ => bail!("session {seed} ends on one server only"),
            };
            let [first, second] = requests.map(|request| Request {
                method: request.method,
                path: request.path,
                body: request.body,
            });
            let name = format!("{} {}", first.method, first.path);
            let ((status, page), (found, copy)) = (one.ask(&first)?, other.ask(&second)?);
            ensure!(status == found, "{name}: status {found} and not {status}");
            // An error page has its own text on each server.
            if status == 200 {
                let texts = [&page, &copy].map(|page| masked(&String::from_utf8_lossy(page)));
                if let Some(difference) = difference(&texts[0], &texts[1]) {
                    bail!("{name}: {difference}");
                }
            }
            seen = [PageSeen::read(&page), PageSeen::read(&copy)];
            pages += 1;
        }
    }
    Ok(pages)
}

/// The page with a placeholder for what differs between two starts of one server: ids, passes, and the
/// remaining time of an item.
fn masked(page: &str) -> String {
    let mut text = String::with_capacity(page.len());
    let mut rest = page;
    while let Some(letter) = rest.chars().next() {
        let found = pass(rest).or_else(|| time(rest));
        let length = if let Some(length) = found {
            text.push('#');
            length
        } else {
            // A number is passed as a whole, so that its last digits do not count as a time.
            let number = rest.bytes().take_while(u8::is_ascii_digit).count();
            let length = number.max(letter.len_utf8());
            text.push_str(&rest[..length]);
            length
        };
        rest = &rest[length..];
    }
    text
}

/// The length of the id at the beginning of `text`, with the rest of a pass if one follows.
fn pass(text: &str) -> Option<usize> {
    const ID: usize = 36;
    let is_id = text.len() >= ID
        && text.bytes().take(ID).enumerate().all(|(place, byte)| match place {
            8 | 13 | 18 | 23 => byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        });
    let rest = is_id.then(|| &text[ID..])?;
    let signature = |rest: &str| {
        let (until, rest) = rest.strip_prefix('.')?.split_once('.')?;
        let is_time = until.bytes().all(|byte| byte.is_ascii_digit());
        let digits = rest.bytes().take_while(u8::is_ascii_hexdigit).count();
        (is_time && digits == 64).then(|| 1 + until.len() + 1 + digits)
    };
    Some(ID + signature(rest).unwrap_or(0))
}

/// The length of a remaining time, such as `2 d 3 h left`, at the beginning of `text`.
fn time(text: &str) -> Option<usize> {
    let mut rest = text;
    loop {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let unit = rest.get(digits..).filter(|_| digits > 0)?;
        if let Some(end) = ["min left", "h left"]
            .iter()
            .find_map(|unit_left| unit.strip_prefix(' ')?.strip_prefix(unit_left))
        {
            return Some(text.len() - end.len());
        }
        rest = unit.strip_prefix(" d ")?;
    }
}

/// The first difference of two texts, with its surroundings.
fn difference(expected: &str, found: &str) -> Option<String> {
    let place = expected.bytes().zip(found.bytes()).position(|(one, other)| one != other);
    let place = match place {
        Some(place) => place,
        None if expected.len() == found.len() => return None,
        None => expected.len().min(found.len()),
    };
    let around = |text: &str| {
        let part = text.bytes().skip(place.saturating_sub(AROUND)).take(2 * AROUND);
        String::from_utf8_lossy(&part.collect::<Vec<_>>()).into_owned()
    };
    Some(format!("`{}` and not `{}`", around(found), around(expected)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "0193f9a0-4c5e-7b3a-9c1d-5e6f70819203";

    #[test]
    fn masks_ids_passes_and_remaining_times_only() {
        let signature = "0123456789abcdef".repeat(4);
        let page = format!(
            "/items/{ID}/bid value=\"{ID}.1795208400.{signature}\" 3 bids, 2 d 23 h left, 14 h left, 5 min left, $1234"
        );
        let expected = "/items/#/bid value=\"#\" 3 bids, #, #, #, $1234";
        assert_eq!(masked(&page), expected);
        assert_eq!(masked("12 d and 7 hours left"), "12 d and 7 hours left");
    }

    #[test]
    fn shows_the_first_difference() {
        assert_eq!(difference("<p>a</p>", "<p>a</p>"), None);
        assert_eq!(difference("<p>a</p>", "<p>b</p>").unwrap(), "`<p>b</p>` and not `<p>a</p>`");
        assert_eq!(difference("ab", "a").unwrap(), "`a` and not `ab`");
    }

    #[test]
    fn finds_the_style_of_the_home_page() {
        let home = "<title>A</title><link rel=\"stylesheet\" href=\"/s.css\"></head><p class=\"actions_3nq7ta\">";
        let look = PageLook::of(home).unwrap();
        assert_eq!(look.suffix, "_3nq7ta");
        assert_eq!(look.sheet, "<link rel=\"stylesheet\" href=\"/s.css\">");
        assert!(PageLook::of("<p>busy</p>").is_err());
    }
}
