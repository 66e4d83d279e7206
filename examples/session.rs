//! Visitors who are known again: each has a name, keeps a theme, and sees where else they are logged in.
//!
//! `cargo run --release --example session`, then <http://127.0.0.1:8080/>. Anybody may be anybody here: a real page asks
//! for a password before `log_in`.

use bine::prelude::*;

#[page("/")]
async fn home(session: Session) -> impl Page {
    let theme: Text = session.get("theme").unwrap_or("light".into());
    let (user, sessions) = (session.user(), session.all().len());
    html! {
        <h1>Hello {session.name()}</h1>
        <form method="post" action="/theme">
            The theme is {theme}":"
            <button name="theme" value="light">Light</button> <button name="theme" value="dark">Dark</button>
        </form>
        {match user {
            Some(user) => {
                <p>{user} is logged in {sessions} times.</p>
                <form method="post" action="/elsewhere"><button>Log out everywhere else</button></form>
                <form method="post" action="/logout"><button>Log out</button></form>
            }
            None => {
                <form method="post" action="/login">
                    <input name="user" aria-label="User" maxlength="40" required> <button>Log in</button>
                </form>
            }
        }}
    }
}

#[page(POST "/theme")]
async fn choose(session: Session, theme: Form<Text>) -> Result<Response, Error> {
    session.set("theme", theme.0).await?;
    Ok(Response::see_other("/"))
}

#[page(POST "/login")]
async fn log_in(session: Session, user: Form<Text>) -> Result<Response, Error> {
    session.log_in(user).await?;
    Ok(Response::see_other("/"))
}

#[page(POST "/elsewhere")]
async fn end_others(session: Session) -> Result<Response, Error> {
    session.revoke_others().await?;
    Ok(Response::see_other("/"))
}

#[page(POST "/logout")]
async fn log_out(session: Session) -> Result<Response, Error> {
    session.log_out().await?;
    Ok(Response::see_other("/"))
}

fn main() -> Exit {
    App::new().page(home).page(choose).page(log_in).page(end_others).page(log_out).run()
}
