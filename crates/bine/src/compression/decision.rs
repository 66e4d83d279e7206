//! Decides whether the content of a response is compressed, and for which client by which coding.

use bine_compression::{MediaTypes, ReplyHead};
use bine_http::Method;
use bine_http::{Coding, negotiate};
use bine_server::{AddressBlock, Incoming};

use super::mode::CompressionMode;
use crate::response_notes::ResponseNotes;

/// The properties of a request that the compression of its response depends on.
#[derive(Clone, Debug)]
pub(super) struct ClientWish {
    /// The coding that the client prefers among those of the server; `None`: it accepts none of them.
    pub(super) coding: Option<Coding>,
    pub(super) mode: CompressionMode,
    pub(super) is_head: bool,
    /// Whether the request has cookies or credentials.
    sends_secrets: bool,
    /// The entity tags that the client has.
    pub(super) if_none_match: Option<Box<[u8]>>,
    /// A hash of the host and the path.
    pub(super) place: u64,
    /// The address block of the client.
    pub(super) block: AddressBlock,
}

/// What happens to the content of a response.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Decision {
    /// It stays as it is for all clients.
    Leave,
    /// It stays as it is for this client.
    Vary,
    /// It is encoded.
    Encode(Coding),
}

/// Which responses can be compressed at all.
#[derive(Clone, Debug)]
pub(super) struct ContentRules {
    pub(super) types: MediaTypes,
    /// The least length in bytes.
    pub(super) least: u64,
}

impl ClientWish {
    /// Reads a request. `mode` and `place` are those of its path.
    pub(super) fn of(
        request: &Incoming<'_>,
        codings: &[Coding],
        mode: CompressionMode,
        place: u64,
    ) -> Self {
        let head = &request.head;
        let accepted =
            head.fields().filter(|(name, _)| name.eq_ignore_ascii_case("accept-encoding"));
        let coding = negotiate(accepted.map(|(_, value)| value), codings.iter().copied());
        Self {
            coding,
            mode,
            is_head: request.exchange.method == Method::Head,
            block: request.peer.block(),
            sends_secrets: head.field("cookie").is_some() || head.field("authorization").is_some(),
            if_none_match: head.field("if-none-match").map(Into::into),
            place,
        }
    }
}

impl ContentRules {
    /// Decides about a response.
    ///
    /// By default, content that depends on who the client is stays as it is: an attacker who can add
    /// text of his own to it and observe its length could find out its secrets (BREACH). The head shows
    /// the use of a session, of a user and of sealed arguments, since shared caches must not store such
    /// a response. `notes` show that the handler has read cookies by itself.
    pub(super) fn decide(
        &self,
        head: &ReplyHead<'_>,
        wish: &ClientWish,
        notes: ResponseNotes,
    ) -> Decision {
        if !head.is_compressible(&self.types, self.least) {
            return Decision::Leave;
        }
        let is_personal = head.is_personal() || (notes.reads_secrets && wish.sends_secrets);
        let is_compressed = match (wish.mode, notes.compression) {
            (CompressionMode::Off, _) | (_, Some(false)) => false,
            (CompressionMode::All, None) | (_, Some(true)) => true,
            (CompressionMode::Shared, None) => !is_personal,
        };
        match wish.coding {
            _ if !is_compressed => Decision::Leave,
            None => Decision::Vary,
            Some(coding) => Decision::Encode(coding),
        }
    }
}

/// Whether the request has an Accept-Encoding field.
pub(super) fn has_preference(request: &Incoming<'_>) -> bool {
    request.head.field("accept-encoding").is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wish(mode: CompressionMode, sends_secrets: bool) -> ClientWish {
        let coding = Some(Coding::Gzip);
        let (if_none_match, block) = (None, AddressBlock::LOCAL);
        ClientWish { coding, mode, is_head: false, sends_secrets, if_none_match, place: 0, block }
    }

    fn decided(line: &str, wish: &ClientWish, notes: ResponseNotes) -> Decision {
        let reply = format!("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n{line}\r\n");
        let rules = ContentRules { types: MediaTypes::default(), least: 10 };
        rules.decide(&ReplyHead::parse(reply.as_bytes()).unwrap(), wish, notes)
    }

    const ENCODED: Decision = Decision::Encode(Coding::Gzip);

    #[test]
    fn leaves_content_that_depends_on_the_client() {
        let (none, shared) = (ResponseNotes::default(), wish(CompressionMode::Shared, true));
        assert_eq!(decided("", &shared, none), ENCODED);
        for line in ["Vary: Cookie\r\n", "Set-Cookie: a=b\r\n", "Cache-Control: private\r\n"] {
            assert_eq!(decided(line, &shared, none), Decision::Leave, "{line}");
            assert_eq!(decided(line, &wish(CompressionMode::All, true), none), ENCODED, "{line}");
            let wanted = ResponseNotes { compression: Some(true), ..none };
            assert_eq!(decided(line, &shared, wanted), ENCODED, "{line}");
        }
    }

    #[test]
    fn leaves_content_of_handlers_that_have_read_cookies() {
        let notes = ResponseNotes { reads_secrets: true, compression: None };
        assert_eq!(decided("", &wish(CompressionMode::Shared, true), notes), Decision::Leave);
        assert_eq!(
            decided("", &wish(CompressionMode::Shared, false), notes),
            ENCODED,
            "no cookie was sent"
        );
        assert_eq!(decided("", &wish(CompressionMode::All, true), notes), ENCODED);
    }

    #[test]
    fn handler_and_configuration_can_turn_it_off() {
        let off = ResponseNotes { compression: Some(false), ..ResponseNotes::default() };
        assert_eq!(decided("", &wish(CompressionMode::All, false), off), Decision::Leave);
        let on = ResponseNotes { compression: Some(true), ..ResponseNotes::default() };
        assert_eq!(decided("", &wish(CompressionMode::Off, false), on), Decision::Leave);
    }

    #[test]
    fn tells_caches_that_other_clients_get_it_encoded() {
        let mut wish = wish(CompressionMode::Shared, false);
        wish.coding = None;
        assert_eq!(decided("", &wish, ResponseNotes::default()), Decision::Vary);
        let short = "Content-Length: 9\r\n";
        assert_eq!(decided(short, &wish, ResponseNotes::default()), Decision::Leave);
    }
}
