//! The attributes of elements, and the modules that browsers request.

use bine::test::{Method, Reply, Site};

use crate::shop::{cart, site};

/// The URL in a handler of the page.
fn module_url() -> String {
    let handler = cart::add.to_string();
    handler.split(' ').nth(1).expect("a URL").to_owned()
}

/// The module that another one imports.
#[track_caller]
fn imported(site: &Site, code: &str, before: &str) -> Reply {
    let (_, rest) = code.split_once(before).unwrap_or_else(|| panic!("{before} in {code}"));
    let name = rest.split('"').next().unwrap_or_default();
    site.get(&format!("/_bine/{name}"))
}

#[test]
fn elements_name_functions_and_have_escaped_data() {
    let url = module_url();
    let page = site().get("/items?name=%22%3E%3Cscript%3E%27%26quot;").text().to_owned();
    let add = format!(
        "<button type=\"button\" data-on=\"click: run {url} 0\" data-with=\"[{{&quot;id&quot;:7,&quot;name&quot;:&quot;\\&quot;&gt;&lt;script&gt;&#39;&amp;quot;&quot;}}]\">Add</button>"
    );
    assert!(page.contains(&add), "{page}");
    let remove = format!("<p data-on=\"dragstart: run {url} 1 now; keydown.Escape: hide this\">");
    assert!(page.contains(&remove), "{page}");
    let large = format!("<p data-on=\"click: run {url} 2\" data-with=\"refused\">");
    assert!(page.contains(&large), "{page}");
    assert!(page.contains("<script type=\"module\" src=\"/_bine/live-"), "{page}");
}

#[test]
fn modules_have_no_types_and_are_kept_by_browsers() {
    let site = site();
    let module = site.get(&module_url());
    assert_eq!(module.header("content-type"), Some("text/javascript; charset=utf-8"));
    assert_eq!(module.header("cache-control"), Some("public, max-age=31536000, immutable"));
    let code = module.text();
    assert!(code.starts_with("import { call, on } from \"./live.js\";\nimport { delete as empty, put } from \"./services.js\";\n"), "{code}");
    assert!(
        code.contains("const add = async (event            , item      )                => {"),
        "{code}"
    );
    assert!(
        code.ends_with(
            "\nexport default[add,remove,loop].map((f)=>([data])=>(event)=>f(event,data));\n"
        ),
        "{code}"
    );
    let tag = module.header("etag").expect("a validator").to_owned();
    let again = site.request(Method::Get, &module_url()).header("If-None-Match", &tag).send();
    assert_eq!(again.status(), 304);
    let price = imported(&site, code, "{ price } from \"./");
    assert!(
        price.text().contains("export const price = (amount        )         =>"),
        "{}",
        price.text()
    );
    let currency = imported(&site, price.text(), "{ CURRENCY } from \"./");
    assert_eq!(currency.text(), "export const CURRENCY         = \"EUR\";\n");
    assert_eq!(site.get("/_bine/cart-AAAAAAAAAAA.js").status(), 404);
}

#[test]
fn services_are_functions_of_a_module() {
    let site = site();
    let services = site.get("/_bine/services.js");
    assert_eq!(services.header("cache-control"), Some("no-cache"));
    let code = services.text();
    assert!(code.starts_with("import{call}from\"/_bine/live-"), "{code}");
    let function = |name: &str| {
        let end = format!(" as \"{name}\"}};");
        let line = code.lines().find(|line| line.ends_with(&end));
        line.unwrap_or_else(|| panic!("{name} in {code}")).to_owned()
    };
    assert!(function("put").contains("=(values)=>call(\"/browser_files/put\",values);"), "{code}");
    assert!(function("delete").contains("call(\"/browser_files/delete\",values);"), "{code}");
    // A service of another program in this test.
    assert!(function("lost").contains("=()=>Promise.reject("), "{code}");
    let answer =
        site.post_json("/browser_files/put", &serde_json::json!({ "item": 7, "count": 2 }));
    assert_eq!(answer.text(), "9");
}

#[test]
fn policy_of_pages_stays_strict() {
    let page = site().get("/items?name=a");
    let policy = page.header("content-security-policy").expect("a policy");
    assert!(policy.starts_with("default-src 'self'; img-src"), "{policy}");
    assert!(!policy.contains("script-src") && !policy.contains("unsafe-eval"), "{policy}");
    assert!(!page.text().contains("<script>"), "{}", page.text());
}
