//! Pages for comments on users.

use bine::prelude::*;

use super::login;
use crate::auction::{Auction, found};
use crate::tables::{Comment, Item, Key, User};

#[page("/users/{user}/comment")]
pub(crate) fn comment_form(
    auction: Auction,
    user: Path<Key<User>>,
    item: Query<Key<Item>>,
) -> Result<impl Respond, Error> {
    let now = auction.read();
    let (user, item) = (found(now.get(user.0.0), "user")?, found(now.get(item.0.0), "item")?);
    let page = html! {
        <h1>Who comments on {user.name}"?"</h1>
        <p>It is about <a href={format_args!("/items/{}", item.id)}>{item.name}</a>.</p>
        {login(format!("/users/{}/comment?item={}", user.id, item.id), "Go on")}
    };
    Ok(page.with_title("Log in to comment"))
}

#[page(POST "/users/{user}/comment")]
pub(crate) fn put_comment(
    auction: Auction,
    user: Path<Key<User>>,
    item: Query<Key<Item>>,
    name: Form<Text>,
    password: Form<Text>,
) -> Result<impl Respond, Error> {
    let now = auction.read();
    let (_, pass) = auction.log_in(&now, &name, &password)?;
    let (user, item) = (found(now.get(user.0.0), "user")?, found(now.get(item.0.0), "item")?);
    let page = html! {
        <h1>How was it with <a href={format_args!("/users/{}", user.id)}>{user.name}</a>"?"</h1>
        <p>It is about <a href={format_args!("/items/{}", item.id)}>{item.name}</a>.</p>
        <form method="post" action={format_args!("/users/{}/comments?item={}", user.id, item.id)}>
            <input type="hidden" name="pass" value={pass}>
            <label>
                Rating
                <select name="rating">
                    <option value="5">Excellent</option>
                    <option value="3">Good</option>
                    <option value="0" selected>As it should be</option>
                    <option value="-3">Not good</option>
                    <option value="-5">Bad</option>
                </select>
            </label>
            <label>Your words <textarea name="words" rows="5" maxlength="2000" required></textarea></label>
            <button>Say it</button>
        </form>
    };
    Ok(page.with_title("Your comment"))
}

#[page(POST "/users/{user}/comments")]
pub(crate) fn store_comment(
    auction: Auction,
    user: Path<Key<User>>,
    item: Query<Key<Item>>,
    pass: Form<Text>,
    rating: Form<i8>,
    words: Form<Text>,
) -> Result<impl Respond, Error> {
    let (from, to, rating) = (auction.bearer(&pass)?, user.0.0, rating.0);
    let user = auction.change(|change| {
        let mut user = found(change.get(to), "user")?;
        let about = found(change.get(item.0.0), "item")?.name;
        let (words, made) = (words.0.clone(), Time::now());
        change.insert(Comment { id: Id::unassigned(), from, to, about, rating, words, made })?;
        user.rating += i64::from(rating);
        change.replace(&user)?;
        Ok(user)
    })?;
    let page = html! {
        <h1>Thank you</h1>
        <p>
            "Everybody can read now what you think of "
            <a href={format_args!("/users/{}", user.id)}>{user.name}</a>"."
        </p>
    };
    Ok(page.with_title("Your comment"))
}
