//! The pages where users create and revoke their API tokens.

use bine_macros::page;

use super::{ApiToken, ApiTokens, DEFAULT_DAYS, MAX_DAYS, MAX_LABEL, NewApiToken};
use crate::arguments::Form;
use crate::error::Error;
use crate::respond::{PageExt as _, PageResponse, Response};
use crate::route::Route;
use crate::store::RowId;
use crate::text::Text;
use crate::{Page, html};

const PATH: &str = "/account/tokens";

pub(super) fn routes() -> Vec<Route> {
    vec![tokens(), create_token(), revoke_token()]
}

#[page("/account/tokens", crate = crate)]
async fn tokens(tokens: ApiTokens) -> PageResponse<impl Page> {
    html! {
        <h1>API tokens</h1>
        <p>
            "A program uses a token instead of your password. It may do what you may do, within the \
             limits that you choose here."
        </p>
        {list(tokens.all())}
        <h2>New token</h2>
        <form method="post" action={PATH}>
            <p>
                <label for="label">What uses it</label>
                <input id="label" name="label" required maxlength={MAX_LABEL}>
            </p>
            <p>
                <label for="days">Days until it expires</label>
                <input id="days" name="days" type="number" min="1" max={MAX_DAYS} value={DEFAULT_DAYS}>
            </p>
            <p>
                <label for="paths">"Only these paths (optional, such as /api/*)"</label>
                <input id="paths" name="paths">
            </p>
            <p>
                <label><input type="checkbox" name="is_read_only" value="true"> Read only</label>
            </p>
            <p><button>Create token</button></p>
        </form>
    }
    .with_title("API tokens")
}

fn list(tokens: Vec<ApiToken>) -> impl crate::Html<crate::Flow> {
    html! {
        {if tokens.is_empty() {
            <p>You have no tokens.</p>
        } else {
            <table>
                <thead><tr>
                    <th>Used by</th><th>Permits</th><th>Created</th><th>Expires</th><th>Last used</th><th></th>
                </tr></thead>
                <tbody>{for token in tokens {
                    <tr>
                        <td>{token.label}</td>
                        <td>{token.scope}</td>
                        <td>{token.created}</td>
                        <td>{token.expires}</td>
                        <td>{match token.last_used { Some(time) => { {time} } None => { never } }}</td>
                        <td>
                            <form method="post" action="/account/tokens/revoke">
                                <input type="hidden" name="id" value={token.id.to_string()}>
                                <button>Revoke</button>
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
    let page = html! {
        <h1>New API token</h1>
        <p>"Copy the token now. The server stores only a hash of it and cannot show it again."</p>
        <p><code>{created.secret}</code></p>
        <p><a href={PATH}>All tokens</a></p>
    };
    let response = Response::from(page.with_title("New API token"));
    Ok(response.with_header("Cache-Control", "no-store"))
}

#[page(POST "/account/tokens/revoke", crate = crate)]
async fn revoke_token(tokens: ApiTokens, id: Form<String>) -> Result<Response, Error> {
    let id: RowId = id.0.parse().map_err(|_| Error::not_found("There is no such token."))?;
    tokens.revoke(id).await?;
    Ok(Response::see_other(PATH))
}
