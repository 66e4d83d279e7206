//! Values of one browser tab in applications.

use bine::test::Method;
use serde_json::{Value, json};

use crate::folder::Folder;

const TABS: &str = r#"import { Live, change, error, page, service } from "bine";
export const choose = service((ctx, { forum, fails }: { forum: string; fails?: boolean }) => {
  ctx.frame.set("forum", forum);
  if (ctx.frame.get("forum") !== forum) throw new Error("a transaction sees its own changes");
  if (fails) throw error(409, "Not chosen");
});
export const later = service(async (ctx, { forum }: { forum: string }) => {
  await ctx.frame.set("forum", forum);
  return ctx.frame.get("forum");
});
export const big = service((ctx) => ctx.frame.set("big", "x".repeat(5000)));
export default page((ctx) => (
  <main>
    <Live><p>{ctx.frame.get("forum") ?? "hops"}</p></Live>
    <a href={ctx.frame.to("/about?a=1")}>About</a>
    <form action={choose}><input name="forum" /><button>Choose</button></form>
  </main>
));
"#;
const ABOUT: &str = r#"import { page } from "bine";
export default page((ctx) => {
  try {
    ctx.frame.set("forum", "page");
  } catch (error) {
    return <p>{ctx.frame.get("forum") ?? "none"}: {(error as Error).message}</p>;
  }
  return <p>wrong</p>;
});
"#;

#[test]
fn keeps_values_of_each_tab_apart() {
    let folder = Folder::with(&[("index.tsx", TABS), ("about.tsx", ABOUT)]);
    let site = folder.site();
    let client = site.client();
    let mut one = client.visit("/");
    let mut other = client.visit("/");
    assert!(one.url().contains("_frame="), "{}", one.url());
    one.submit("form", [("forum", "malt")]);
    one.expect("p", "malt");
    other.expect("p", "hops");
    one.reload();
    one.expect("p", "malt");
    let from = format!("http://{}{}", site.address(), one.url());
    let call = |service: &str, arguments: Value| {
        let request = client.request(Method::Post, service).header("Accept", "application/json");
        request.header("Referer", &*from).json(&arguments).send()
    };
    let failed = call("/choose", json!({ "forum": "yeast", "fails": true }));
    assert_eq!(failed.status(), 409, "{}", failed.text());
    assert_eq!(call("/big", json!({})).status(), 413);
    one.expect("p", "malt");
    let later = call("/later", json!({ "forum": "water" }));
    assert_eq!(later.json::<String>(), "water", "{}", later.text());
    one.expect("p", "water");
    // A link keeps the frame.
    one.click("a");
    one.expect("p", "water: a page only reads");
    // A service that no page with a frame calls has none.
    let none = client.post_json("/choose", &json!({ "forum": "malt" }));
    assert_eq!(none.status(), 400, "{}", none.text());
}

#[test]
fn asks_for_cookies_before_it_gives_a_frame() {
    let folder = Folder::with(&[("index.tsx", TABS)]);
    let site = folder.site();
    let first = site.get("/");
    assert_eq!(first.status(), 303);
    let location = first.header("location").unwrap();
    assert!(first.header("set-cookie").is_some() && location.contains("_frame="), "{location}");
    // A browser that returns without the cookie gets a second address, and then the reason.
    let second = site.get(location);
    assert_eq!(second.status(), 303);
    let third = site.get(second.header("location").unwrap());
    assert_eq!(third.status(), 400, "{}", third.text());
}
