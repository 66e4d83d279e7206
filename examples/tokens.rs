//! A door: who may do what with channels is said by a token that this program hands out.
//!
//! `SECRET=$(openssl rand -hex 32) cargo run --release --example tokens`, and with the same secret make a token for Ann by
//! any library for JSON Web Tokens, with these claims:
//!
//! ```json
//! {"sub": "ann", "exp": 1795212000, "channels": {"follow": ["chat/*"], "publish": ["chat/*"]}}
//! ```
//!
//! ```sh
//! curl -i 'http://127.0.0.1:8080/channels?c=chat/1'                                  # 401, and why
//! curl -H "Authorization: Bearer $TOKEN" 'http://127.0.0.1:8080/channels?c=chat/1'   # waits
//! curl -X POST http://127.0.0.1:8080/away/ann                                        # and that ends
//! ```

use bine::channels::{Access, Settings, Tokens};
use bine::prelude::*;

/// Shows somebody the door, for as long as the tokens that they have could last. A program for others than this machine
/// asks first who wants it.
#[page(POST "/away/{name}")]
async fn away(channels: Channels, name: Path<Text>) -> Result<Response, Error> {
    channels.revoke(&name).await?;
    Ok(Response::text(format!("{name} is gone\n")))
}

fn main() -> Exit {
    let secret = std::env::var("SECRET").unwrap_or_default();
    App::new()
        .forgetful()
        .channels(Access::none().follow("news").tokens(Tokens::hs256(secret)))
        .channel("news", Settings::default())
        .channel("chat/1", Settings::default())
        .page(away)
        .run()
}
