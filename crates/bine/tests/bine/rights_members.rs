//! Members of groups: who is in a group, as live pages and transactions see it.

use bine::prelude::*;
use bine::test::{Client, Method, Site};
use bine::{AccessRules, Rights, Who};

#[page("/editors")]
async fn editors(rights: Rights) -> impl Page {
    let members = rights.members("editors");
    html!(<Live><ul>{for member in members { <li>{member}</li> }}</ul></Live>)
}

#[page("/groups/{user}")]
async fn groups(rights: Rights, user: Path<Text>) -> Response {
    let groups = rights.groups_of(&user);
    Response::text(groups.iter().map(|group| &**group).collect::<Vec<_>>().join(" "))
}

#[page(POST "/change/{word}/{group}/{user}")]
async fn change(
    rights: Rights,
    word: Path<Text>,
    group: Path<Text>,
    user: Path<Text>,
) -> Result<Response, Error> {
    match &**word {
        "add" => rights.add_to_group(&user, &group).await?,
        _ => rights.remove_from_group(&user, &group).await?,
    };
    Ok(Response::text("changed"))
}

/// A program with a table has a `Store`.
#[derive(Table)]
struct Team {
    id: Id<Team>,
    name: Text,
}

/// Replaces the stored members by one user, and returns the members before and after, as the transaction sees them.
#[page(POST "/replace/{user}")]
async fn replace(store: Store, rights: Rights, user: Path<Text>) -> Result<Response, Error> {
    let members = store.change(|change| {
        let before = rights.members_in(change, "editors");
        for member in before.iter().filter(|member| !rights.is_same_user(member, "root")) {
            rights.remove_from_group_in(change, member, "editors")?;
        }
        rights.add_to_group_in(change, &user, "editors")?;
        Ok::<_, Error>(
            [before, rights.members_in(change, "editors")]
                .concat()
                .iter()
                .map(|name| &**name)
                .collect::<Vec<_>>()
                .join(" "),
        )
    });
    Ok(Response::text(members.await?))
}

fn app() -> App {
    let rules = AccessRules::new()
        .allow("/editors", Who::Anonymous)
        .member("editors", "root")
        .member("readers", "root");
    App::new().table::<Team>().rights(rules).page(editors).page(groups).page(change).page(replace)
}

fn post(client: &Client, path: &str) -> String {
    let reply = client.request(Method::Post, path).send();
    assert_eq!(reply.status(), 200, "{path}");
    reply.text().to_owned()
}

#[test]
fn lists_members_and_groups_of_all_sources() {
    let site = Site::new(app());
    let client = site.client();
    for user in ["zoe", "ann"] {
        post(&client, &format!("/change/add/editors/{user}"));
    }
    // Stored too: each name is listed once.
    post(&client, "/change/add/editors/root");
    assert_eq!(site.visit("/editors").texts("li"), ["ann", "root", "zoe"]);
    assert_eq!(client.get("/groups/root").text(), "editors readers");
    assert_eq!(client.get("/groups/ann").text(), "editors");
    assert_eq!(client.get("/groups/nobody").text(), "");
    assert_eq!(post(&client, "/replace/eve"), "ann root zoe eve root");
    assert_eq!(site.visit("/editors").texts("li"), ["eve", "root"]);
}

#[test]
fn pages_follow_the_members_that_they_show() {
    let site = Site::new(app());
    let client = site.client();
    let mut tab = site.visit("/editors");
    tab.expect("li", "root");
    post(&client, "/change/add/editors/zoe");
    tab.expect("li:last-child", "zoe");
    post(&client, "/change/add/readers/eve");
    post(&client, "/replace/ann");
    tab.expect("li:first-child", "ann");
    tab.expect_count("li", 2);
}
