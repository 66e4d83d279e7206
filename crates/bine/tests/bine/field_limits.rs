//! The limits of columns and arguments as attributes of the fields of forms that name a service.

use bine::prelude::*;
use bine::test::Site;

#[derive(Table)]
struct Card {
    id: Id<Card>,
    #[table(length = 1..=80)]
    title: Text,
    #[table(length = 0..=1000)]
    words: Text,
    #[table(length = 3..=20)]
    place: Option<Text>,
    #[table(range = 1..=5)]
    stars: u8,
    #[table(range = 0.5..=4.5)]
    weight: f64,
}

#[service]
fn add_card(
    call: &mut Call,
    title: Text,
    words: Text,
    place: Option<Text>,
    stars: u8,
    weight: f64,
) -> Result<Id<Card>, Error> {
    Ok(call.insert(Card { id: Id::unassigned(), title, words, place, stars, weight })?)
}

#[service]
fn rename_card(call: &mut Call, card: Id<Card>, title: Text) -> Result<(), Error> {
    call.update(card, |card| card.title = title)?;
    Ok(())
}

/// Accepts titles of any length.
#[service]
fn shorten_card(call: &mut Call, card: Id<Card>, title: Text) -> Result<(), Error> {
    let title: Text = title.chars().take(80).collect::<String>().into();
    call.update(card, |card| card.title = title)?;
    Ok(())
}

#[page("/")]
async fn cards() -> impl Page {
    html! {
        <form method="post" action={add_card}>
            <input name="title" aria-label="Title">
            <textarea name="words" aria-label="Words"></textarea>
            <input name="place" aria-label="Place">
            <input type="number" name="stars" aria-label="Stars" max="3">
            <input type="number" name="weight" aria-label="Weight">
        </form>
        <form method="post" action={rename_card}>
            <select name="card" aria-label="Card"><option value="">Choose</option></select>
            <p><input name="title" aria-label="New title" required={false}></p>
            <input type="hidden" name="title" value="a">
        </form>
        <form method="post" action={rename_card}>
            <input type="hidden" name="card" value="a">
            <p><input name="title" aria-label="Its title" required={false}></p>
        </form>
        <form method="post" action={shorten_card}>
            <input name="title" aria-label="Long title">
        </form>
        <form method="post" action={rename_card}>
            <input name="title" aria-label="Another title">
            <button formaction={shorten_card}>Shorten</button>
        </form>
    }
}

#[page("/others")]
async fn others() -> impl Page {
    let add_card = "/elsewhere";
    html! {
        <form method="post" action={add_card}><input name="title" aria-label="Title"></form>
    }
}

fn site() -> Site {
    let app = App::new().table::<Card>().page(cards).page(others);
    Site::new(app.service(add_card).service(rename_card).service(shorten_card))
}

#[test]
fn fields_of_a_service_have_the_limits_of_its_columns() {
    let site = site();
    // The second time, the attributes are known.
    for _ in 0..2 {
        let page = site.get("/").text().to_owned();
        for field in [
            r#"aria-label="Title" required="" maxlength="160" />"#,
            r#"aria-label="Words" maxlength="2000">"#,
            r#"aria-label="Place" minlength="3" maxlength="40" />"#,
            r#"aria-label="Stars" max="3" required="" min="1" />"#,
            r#"aria-label="Weight" required="" min="0.5" max="4.5" step="any" />"#,
            r#"aria-label="Card" required="">"#,
            r#"aria-label="New title" />"#,
            r#"aria-label="Its title" maxlength="160" />"#,
            r#"aria-label="Long title" />"#,
            r#"aria-label="Another title" />"#,
        ] {
            assert!(page.contains(field), "{field}\n{page}");
        }
    }
}

#[test]
fn fields_of_other_forms_have_no_limits() {
    let page = site().get("/others").text().to_owned();
    assert!(page.contains(r#"aria-label="Title" />"#), "{page}");
}

/// The longest text that the column accepts, in characters that a browser counts twice.
#[test]
fn service_accepts_what_the_limits_of_a_field_allow() {
    let site = site();
    let card = |title: &str| {
        let form = format!("title={title}&words=&place=&stars=5&weight=0.5");
        let request = site.request(bine::test::Method::Post, "/bine/add_card");
        request.header("Content-Type", "application/x-www-form-urlencoded").body(form).send()
    };
    let flower = "%F0%9F%8C%B7";
    assert_eq!(card(&flower.repeat(80)).status(), 200);
    assert_eq!(card(&flower.repeat(81)).status(), 422);
}
