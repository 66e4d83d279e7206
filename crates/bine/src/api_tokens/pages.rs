//! The pages where users create and revoke their API tokens.

use bine_http::Status;
use bine_macros::page;

use super::{ApiToken, ApiTokens, DEFAULT_DAYS, MAX_DAYS, MAX_LABEL, NewApiToken};
use crate::arguments::{Form, FromRequest, Rejection, RequestParts};
use crate::error::Error;
use crate::languages::VisitorWords;
use crate::respond::{PageExt as _, PageResponse, Response};
use crate::route::Route;
use crate::store::RowId;
use crate::text::Text;
use crate::visitor_message::ApiTokenMessage as M;
use crate::{Page, html};

const PATH: &str = "/account/tokens";

/// The words for the visitor, as an argument of these pages.
struct Words(VisitorWords);

impl FromRequest for Words {
    fn from_request(
        request: &mut RequestParts<'_>,
        _name: &'static str,
    ) -> Result<Self, Rejection> {
        let languages = request.app.templates.languages.as_ref();
        Ok(Self(VisitorWords::of(languages, Some(request.incoming))))
    }
}

impl Words {
    /// The texts of messages in these words, for the content of a page.
    fn say(&self) -> impl Fn(M) -> String + Send + use<> {
        let words = self.0.clone();
        move |message| words.say(&message.into())
    }
}

pub(super) fn routes() -> Vec<Route> {
    vec![tokens(), create_token(), revoke_token()]
}

#[page("/account/tokens", crate = crate)]
async fn tokens(tokens: ApiTokens, words: Words) -> PageResponse<impl Page> {
    let (say, list) = (words.say(), list(tokens.all(), words.say()));
    let title = say(M::Title {});
    html! {
        <h1>{say(M::Title {})}</h1>
        <p>
            {say(M::Purpose {})}
        </p>
        {list}
        <h2>{say(M::NewTitle {})}</h2>
        <form method="post" action={PATH}>
            <p>
                <label for="label">{say(M::Label {})}</label>
                <input id="label" name="label" required maxlength={MAX_LABEL}>
            </p>
            <p>
                <label for="days">{say(M::Days {})}</label>
                <input id="days" name="days" type="number" min="1" max={MAX_DAYS} value={DEFAULT_DAYS}>
            </p>
            <p>
                <label for="paths">{say(M::Paths {})}</label>
                <input id="paths" name="paths">
            </p>
            <p>
                <label><input type="checkbox" name="is_read_only" value="true">" "{say(M::ReadOnly {})}</label>
            </p>
            <p><button>{say(M::Create {})}</button></p>
        </form>
    }
    .with_title(title)
}

fn list(tokens: Vec<ApiToken>, say: impl Fn(M) -> String) -> impl crate::Html<crate::Flow> {
    html! {
        {if tokens.is_empty() {
            <p>{say(M::None {})}</p>
        } else {
            <table>
                <thead><tr>
                    <th>{say(M::UsedBy {})}</th><th>{say(M::Permits {})}</th><th>{say(M::Created {})}</th>
                    <th>{say(M::Expires {})}</th><th>{say(M::LastUsed {})}</th><th></th>
                </tr></thead>
                <tbody>{for token in tokens {
                    <tr>
                        <td>{token.label}</td>
                        <td>{token.scope}</td>
                        <td>{token.created}</td>
                        <td>{token.expires}</td>
                        <td>{match token.last_used { Some(time) => { {time} } None => { {say(M::Never {})} } }}</td>
                        <td>
                            <form method="post" action="/account/tokens/revoke">
                                <input type="hidden" name="id" value={token.id.to_string()}>
                                <button>{say(M::Revoke {})}</button>
                            </form>
                        </td>
                    </tr>
                }}</tbody>
            </table>
        }}
    }
}

#[page(POST "/account/tokens", crate = crate)]
async fn create_token(
    tokens: ApiTokens,
    words: Words,
    label: Form<Text>,
    days: Form<Option<u32>>,
    paths: Form<Option<String>>,
    is_read_only: Form<bool>,
) -> Result<Response, Error> {
    let paths = paths.0.unwrap_or_default();
    let mut wanted = NewApiToken::new(label.0.as_str())
        .paths(paths.split_whitespace())
        .expires_in_days(days.0.unwrap_or(DEFAULT_DAYS));
    if is_read_only.0 {
        wanted = wanted.read_only();
    }
    let created = tokens.create(wanted).await?;
    let say = words.say();
    let title = say(M::CreatedTitle {});
    let page = html! {
        <h1>{say(M::CreatedTitle {})}</h1>
        <p>{say(M::CopyNow {})}</p>
        <p><code>{created.secret}</code></p>
        <p><a href={PATH}>{say(M::All {})}</a></p>
    };
    let response = Response::from(page.with_title(title));
    Ok(response.with_header("Cache-Control", "no-store"))
}

#[page(POST "/account/tokens/revoke", crate = crate)]
async fn revoke_token(tokens: ApiTokens, id: Form<String>) -> Result<Response, Error> {
    let id: RowId = id.0.parse().map_err(|_| Error::told(Status::NOT_FOUND, M::Missing {}))?;
    tokens.revoke(id).await?;
    Ok(Response::see_other(PATH))
}
