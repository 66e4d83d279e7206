//! Calls between Rust and TSX.

use bine::App;
use bine::prelude::*;
use bine::test::Site;
use serde_json::json;

use crate::folder::Folder;

#[derive(Table)]
struct Order {
    id: Id<Order>,
    #[table(unique)]
    item: Text,
    count: u32,
}

#[service]
fn order(call: &mut Call, item: Text, count: u32) -> Result<u32, Error> {
    if count > 100 {
        return Err(Error::conflict("We have only 100."));
    }
    call.insert(Order { id: Id::unassigned(), item, count })?;
    Ok(count * 2)
}

#[service]
async fn price(item: Text) -> usize {
    item.len()
}

/// Calls a service in TSX within its own transaction.
#[service]
fn order_and_note(call: &mut Call, item: Text) -> Result<Text, Error> {
    call.insert(Order { id: Id::unassigned(), item: item.clone(), count: 1 })?;
    call.call_service("/shop/note", &json!({ "body": item }))
}

#[service]
async fn ask(caller: Caller, path: Text) -> Result<Vec<Text>, Error> {
    caller.call_service(&path, &json!({})).await
}

/// Calls a service in TSX, which calls this one.
#[service]
fn dive(call: &mut Call, left: u32) -> Result<u32, Error> {
    call.call_service("/shop/deeper", &json!({ "left": left }))
}

/// The same outside of a transaction.
#[service]
async fn dive_outside(caller: Caller, left: u32) -> Result<u32, Error> {
    caller.call_service("/shop/deeperOutside", &json!({ "left": left })).await
}

#[service]
fn busy() -> Result<(), Error> {
    Err(Error::unavailable("The shop is busy."))
}

const SHOP: &str = r#"import { change, page, service, table, text } from "bine";
import { busy, dive, dive_outside, order, order_and_note, price } from "bine:services";
const notes = table("notes", { body: text().unique() });

export const note = service((ctx, { body }: { body: string }) => {
  if (body === "bad") throw new Error("no such note");
  notes.insert({ body });
  return `noted ${body}`;
});
export const all = service(() => notes.all().map((one) => one.body));
export const buy = service((ctx, { item, count }: { item: string; count: number }) => {
  const doubled = order({ item, count });
  notes.insert({ body: item });
  return { doubled };
});
export const tryBuy = service((ctx, { item }: { item: string }) => {
  try {
    order({ item, count: 1000 });
  } catch (error) {
    notes.insert({ body: `${error.message}` });
  }
});
export const later = service(async (ctx, { item }: { item: string }) => {
  const length = await price({ item });
  const ordered = await order({ item, count: length });
  await change(() => notes.insert({ body: `${item}: ${ordered}` }));
  return length;
});
export const nested = service((ctx, { item }: { item: string }) => order_and_note({ item }));
export const deeper = service((ctx, { left }: { left: number }) => left === 0 ? 0 : dive({ left: left - 1 }));
export const deeperOutside = service(async (ctx, { left }: { left: number }) =>
  left === 0 ? 0 : await dive_outside({ left: left - 1 }));
const item = (what: string): any => {
  const cycle: any = {};
  cycle.cycle = cycle;
  let deep: any = [];
  for (let n = 0; n < 100_000; n++) deep = [deep];
  return {
    getter: { get item() { notes.insert({ body: "from a getter" }); return "x"; }, count: 1 },
    throwing: { get item() { throw new Error("hostile"); }, count: 1 },
    proxy: new Proxy({ item: "x", count: 1 }, { get() { throw new Error("hostile"); } }),
    cycle: { item: cycle, count: 1 },
    deep: { item: deep, count: 1 },
    function: { item: () => "x", count: 1 },
    date: { item: new Date(), count: 1 },
    proto: JSON.parse('{"item":"x","count":1,"__proto__":{"count":2}}'),
    text: "item",
  }[what];
};
export const attack = service((ctx, { what }: { what: string }) => order(item(what)));
export const attackLater = service(async (ctx, { what }: { what: string }) => await order(item(what)));
export const askBusy = service((ctx, { catches }: { catches: boolean }) => {
  if (!catches) return busy();
  try { busy(); } catch { return "caught"; }
});
export const askBusyLater = service(async (ctx, { catches }: { catches: boolean }) =>
  catches ? await busy().catch(() => "caught") : await busy());
export default page(async () => <main><p>{await price({ item: "hops" })}</p><form action={order}><button>Order</button></form></main>);
"#;

fn shop() -> (Folder, Site) {
    let other = "import { page } from \"bine\";\nexport default page(() => <p>other</p>);\n";
    let folder = Folder::with(&[("shop/index.tsx", SHOP), ("other/index.tsx", other)]);
    let app = App::new()
        .scripts(folder.path())
        .table::<Order>()
        .service(order)
        .service(price)
        .service(order_and_note)
        .service(ask)
        .service(dive)
        .service(dive_outside)
        .service(busy);
    let site = Site::new(app);
    (folder, site)
}

/// The address of a service of this file.
fn at(name: &str) -> String {
    format!("/scripts/{name}")
}

#[test]
fn calls_services_of_rust_from_scripts() {
    let (_folder, site) = shop();
    let page = site.get("/shop/").text().to_owned();
    assert!(page.contains("<p>4</p>"), "{page}");
    assert!(page.contains(&format!("action=\"{}\"", at("order"))), "{page}");
    let bought = site.post_json("/shop/buy", &json!({ "item": "malt", "count": 3 }));
    assert_eq!(bought.json::<serde_json::Value>(), json!({ "doubled": 6 }), "{}", bought.text());
    let later = site.post_json("/shop/later", &json!({ "item": "yeast" }));
    assert_eq!(later.json::<u32>(), 5, "{}", later.text());
    let all: Vec<String> = site.post_json("/shop/all", &json!({})).json();
    assert_eq!(all, ["malt", "yeast: 10"]);
}

#[test]
fn joins_one_transaction_across_languages() {
    let (_folder, site) = shop();
    assert!(site.get("/shop/").status() == 200);
    let both = site.post_json(&at("order_and_note"), &json!({ "item": "hops" }));
    assert_eq!(both.json::<String>(), "noted hops", "{}", both.text());
    // The order is taken back with the note.
    let failed = site.post_json(&at("order_and_note"), &json!({ "item": "bad" }));
    assert_eq!(failed.status(), 500, "{}", failed.text());
    let again = site.post_json("/shop/buy", &json!({ "item": "bad", "count": 1 }));
    assert_eq!(again.json::<serde_json::Value>(), json!({ "doubled": 2 }), "{}", again.text());
    // The note of the failed purchase is taken back, because the item was ordered already.
    assert_eq!(site.post_json("/shop/buy", &json!({ "item": "hops", "count": 1 })).status(), 409);
    let all: Vec<String> = site.post_json(&at("ask"), &json!({ "path": "/shop/all" })).json();
    assert_eq!(all, ["hops", "bad"]);
}

#[test]
fn passes_errors_of_rust_to_scripts() {
    let (_folder, site) = shop();
    let refused = site.post_json("/shop/buy", &json!({ "item": "a", "count": 101 }));
    assert_eq!(refused.status(), 409);
    assert!(refused.text().contains("We have only 100."), "{}", refused.text());
    assert_eq!(site.post_json("/shop/tryBuy", &json!({ "item": "b" })).status(), 204);
    let all: Vec<String> = site.post_json("/shop/all", &json!({})).json();
    assert_eq!(all, ["We have only 100."]);
    let wrong = site.post_json("/shop/buy", &json!({ "item": "c", "count": 1.5 }));
    assert_eq!(wrong.status(), 400, "{}", wrong.text());
}

#[test]
fn calls_the_own_application_by_way_of_rust() {
    let (_folder, site) = shop();
    let nested = site.post_json("/shop/nested", &json!({ "item": "hops" }));
    assert_eq!(nested.json::<String>(), "noted hops", "{}", nested.text());
    let all: Vec<String> = site.post_json("/shop/all", &json!({})).json();
    assert_eq!(all, ["hops"]);
    // The inner service fails, and takes the whole change back.
    assert_eq!(site.post_json("/shop/nested", &json!({ "item": "hops" })).status(), 409);
}

/// A service that calls itself by way of the other language: in a transaction, outside of one, and from
/// each of both languages.
#[test]
fn ends_a_recursion_across_languages() {
    let (_folder, site) = shop();
    assert!(site.get("/shop/").status() == 200);
    let before = site.post_json("/shop/buy", &json!({ "item": "malt", "count": 3 }));
    assert_eq!(before.status(), 200);
    for (service, left) in [
        (at("dive"), 10_000),
        ("/shop/deeper".to_owned(), 10_000),
        (at("dive_outside"), 10_000),
        ("/shop/deeperOutside".to_owned(), 10_000),
    ] {
        for _ in 0..2 {
            let reply = site.post_json(&service, &json!({ "left": left }));
            assert_eq!(reply.status(), 503, "{service}: {}", reply.text());
            assert!(reply.text().contains("without an end?"), "{service}: {}", reply.text());
            // Both applications and the data of the visitor before are unharmed.
            assert!(site.get("/other/").text().contains("<p>other</p>"), "{service}");
            let all: Vec<String> = site.post_json("/shop/all", &json!({})).json();
            assert_eq!(all, ["malt"], "{service}");
        }
        // A recursion with an end has one.
        let reply = site.post_json(&service, &json!({ "left": 2 }));
        assert_eq!(reply.json::<u32>(), 0, "{service}: {}", reply.text());
    }
}

/// Services of Rust read arguments as JSON, before they run: what a script does while it makes the
/// arguments cannot change them afterwards.
#[test]
fn rejects_hostile_arguments_of_services_of_rust() {
    let (_folder, site) = shop();
    for (what, status) in [
        ("getter", 500),
        ("throwing", 500),
        ("proxy", 500),
        ("cycle", 500),
        ("deep", 500),
        ("function", 500),
        ("date", 500),
        ("proto", 500),
        ("text", 500),
    ] {
        for service in ["/shop/attack", "/shop/attackLater"] {
            let reply = site.post_json(service, &json!({ "what": what }));
            assert_eq!(reply.status(), status, "{service} {what}: {}", reply.text());
            assert!(site.get("/other/").text().contains("<p>other</p>"), "{what}");
        }
    }
    let all: Vec<String> = site.post_json("/shop/all", &json!({})).json();
    assert!(all.is_empty(), "{all:?}");
    let bought = site.post_json("/shop/buy", &json!({ "item": "malt", "count": 3 }));
    assert_eq!(bought.status(), 200, "{}", bought.text());
}

/// A failure of a called service is one of its caller, with its status, unless the caller catches it.
#[test]
fn passes_the_status_of_a_failed_service_to_its_caller() {
    let (_folder, site) = shop();
    for service in ["/shop/askBusy", "/shop/askBusyLater"] {
        let reply = site.post_json(service, &json!({ "catches": false }));
        assert_eq!(reply.status(), 503, "{service}: {}", reply.text());
        let reply = site.post_json(service, &json!({ "catches": true }));
        assert_eq!(reply.json::<String>(), "caught", "{service}: {}", reply.text());
    }
}

#[test]
fn tells_which_service_of_rust_is_missing() {
    let folder = Folder::with(&[(
        "index.tsx",
        "import { page } from \"bine\";\nimport { prise } from \"bine:services\";\nexport default page(() => <p>{prise}</p>);\n",
    )]);
    let site = Site::new(App::new().scripts(folder.path()).service(price));
    let reply = site.request(bine::test::Method::Get, "/").header("Accept", "text/html").send();
    assert_eq!(reply.status(), 500);
    assert!(reply.text().contains("index.tsx:2:"), "{}", reply.text());
    assert!(reply.text().contains("did you mean `price`?"), "{}", reply.text());
}
