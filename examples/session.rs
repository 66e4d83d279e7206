//! Sessions: each visitor has a name and a theme, and sees in real time on how many devices they
//! are logged in.
//!
//! Run `cargo run --release --example session`, then open <http://127.0.0.1:8080/>. Here anyone can
//! log in under any name: a real page checks a password before `log_in`.

use bine::prelude::*;

#[page("/")]
async fn home(session: Session) -> impl Page {
    let theme: Text = session.get("theme").unwrap_or("light".into());
    let (user, sessions) = (session.user(), session.all().len());
    html! {
        <h1>Hello {session.name()}</h1>
        <Live>
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
        </Live>
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

fn app() -> App {
    App::new().page(home).page(choose).page(log_in).page(end_others).page(log_out)
}

fn main() -> Exit {
    app().run()
}

#[cfg(test)]
mod tests {
    use bine::test::Site;

    #[test]
    fn shares_a_session_between_tabs_but_not_between_visitors() {
        let site = Site::new(super::app());
        let (ann, bo) = (site.client(), site.client());
        let mut tab = ann.visit("/");
        tab.click("button[value=dark]");
        tab.expect("form", "The theme is dark:");
        tab.open("/").expect("form", "The theme is dark:");
        bo.visit("/").expect("form", "The theme is light:");
        assert_ne!(tab.text("h1"), bo.visit("/").text("h1"));
    }

    #[test]
    fn logs_a_user_out_elsewhere() {
        let site = Site::new(super::app());
        let (mut tab, mut phone) = (site.visit("/"), site.visit("/"));
        for each in [&mut tab, &mut phone] {
            each.submit("form[action='/login']", [("user", "ann")]);
        }
        tab.reload();
        tab.expect("p", "ann is logged in 2 times.");
        tab.click("form[action='/elsewhere'] button");
        phone.reload();
        phone.expect_none("p", "logged in");
    }
}
