//! Access to channels by tokens, which this program issues and revokes.
//!
//! Run `cargo run --release --example tokens`, and then:
//!
//! ```sh
//! curl -i 'http://127.0.0.1:8080/channels?c=chat/1'                                # 401, and why
//! TOKEN=$(curl -X POST http://127.0.0.1:8080/tokens/ann)
//! curl -H "Authorization: Bearer $TOKEN" 'http://127.0.0.1:8080/channels?c=chat/1' # waits
//! curl -X DELETE http://127.0.0.1:8080/tokens/ann                                  # and that ends
//! ```

use std::time::{Duration, SystemTime};

use bine::channels::{Access, Grant, Pattern, Settings, TokenVerifier};
use bine::prelude::*;

/// A real program needs a secret of its own; `openssl rand -hex 32` creates one.
const SECRET: &str = "for this example alone, and known to everybody";

/// Every channel whose name begins with `chat/`.
const CHATS: Pattern = Pattern::new("chat/*");

/// Issues a token for one hour to any client. A real program authenticates the user first.
#[page(POST "/tokens/{name}")]
async fn give(name: Path<Text>) -> Result<Response, Error> {
    let grant = Grant::to(&name).follow(CHATS).publish(CHATS);
    let grant = grant.until(SystemTime::now() + Duration::from_hours(1));
    Ok(Response::text(grant.token(SECRET).map_err(Error::bad_request)?))
}

/// Revokes all tokens of a user.
#[page(DELETE "/tokens/{name}")]
async fn take_back(channels: Channels, name: Path<Text>) -> Result<Response, Error> {
    channels.revoke(&name).await?;
    Ok(Response::text(format!("{name} is out\n")))
}

fn main() -> Exit {
    App::new()
        .in_memory()
        .channels(Access::none().follow("news").tokens(TokenVerifier::hs256(SECRET)))
        .channel("news", Settings::default())
        .channel("chat/1", Settings::default())
        .page(give)
        .page(take_back)
        .run()
}
