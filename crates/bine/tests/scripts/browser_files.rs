//! Files of the browser that import services of Rust and the words of the script of pages.

use bine::prelude::*;
use bine::test::{Method, Site};

use crate::folder::Folder;

#[service]
async fn weigh(grams: u32) -> Result<u32, Error> {
    Ok(grams / 1000)
}

const PAGE: &str = "import { page } from \"bine\";\nimport { show, unit } from \"./scale.browser.ts\";\nexport default page(() => <button type=\"button\" onclick={() => show(1500)}>{unit()}</button>);\n";
const SCALE: &str = "import { on } from \"bine:browser\";\nimport { weigh as ask } from \"bine:services\";\nexport const unit = () => \"kg\";\nexport const show = async (grams: number) => { on(\"weighed\", () => {}); await ask({ grams }); };\n";

/// The part of a text between two others.
#[track_caller]
fn between<'t>(text: &'t str, before: &str, after: &str) -> &'t str {
    let (_, rest) = text.split_once(before).unwrap_or_else(|| panic!("{before} in {text}"));
    rest.split_once(after).unwrap_or_else(|| panic!("{after} in {rest}")).0
}

#[test]
fn files_call_services_of_rust() {
    let folder = Folder::with(&[("index.tsx", PAGE), ("scale.browser.ts", SCALE)]);
    let site = Site::new(folder.app().service(weigh));
    let page = site.get("/").text().to_owned();
    // The server runs the file too, without a page.
    assert!(page.contains(">kg</button>"), "{page}");
    let handlers = site.get(between(&page, "data-on=\"click: run ", " ")).text().to_owned();
    let scale = between(&handlers, "{show as show}from\"./", "\"");
    let scale = site.get(&format!("/_js/{scale}")).text().to_owned();
    let script = between(&scale, "import { on } from \"", "\"").to_owned();
    assert!(page.contains(&format!("src=\"{script}\"")), "{script} in {page}");
    let services = between(&scale, "import { weigh as ask } from \"./", "\"");
    let services = site.get(&format!("/_js/{services}")).text().to_owned();
    let expected = format!(
        "import{{call}}from\"{script}\";\nconst s0=(values)=>call(\"/scripts/weigh\",values);export{{s0 as \"weigh\"}};\n"
    );
    assert_eq!(services, expected);
}

#[test]
fn reports_unknown_names_with_their_places() {
    for (scale, expected) in [
        (
            SCALE.replace("weigh as", "weight as"),
            "scale.browser.ts:2:31: the program has no service `weight`; did you mean `weigh`?",
        ),
        (
            SCALE.replace("{ on }", "{ off as on }"),
            "scale.browser.ts:1:27: \"bine:browser\" has no `off`: it has `call`, `follow`, `navigate`, `on`",
        ),
    ] {
        let folder = Folder::with(&[("index.tsx", PAGE), ("scale.browser.ts", &scale)]);
        let site = Site::new(folder.app().service(weigh));
        let reply = site.request(Method::Get, "/").header("Accept", "application/json").send();
        assert_eq!(reply.status(), 500, "{}", reply.text());
        let problem: serde_json::Value = reply.json();
        let causes = problem["causes"].to_string().replace("\\\"", "\"");
        assert!(causes.contains(expected), "{causes}");
    }
}

#[test]
fn pages_cannot_use_words_of_browsers() {
    let page = PAGE.replace("./scale.browser.ts", "bine:browser");
    let folder = Folder::with(&[("index.tsx", &page)]);
    let reply = folder.site().request(Method::Get, "/").header("Accept", "application/json").send();
    assert!(
        reply.text().contains("2:28: only a file whose name ends with `.browser.ts` imports"),
        "{}",
        reply.text()
    );
}
