//! Finds the session ticket that a `ClientHello` offers, before the server spends anything on the
//! handshake.

/// Content type of a handshake record (RFC 8446 section 5.1).
pub(super) const HANDSHAKE: u8 = 22;
/// Length of a record's header: type, version and length.
pub(super) const RECORD_HEAD: usize = 5;
/// Handshake type of a `ClientHello` (RFC 8446 section 4).
const CLIENT_HELLO: u8 = 1;
/// Extensions with a ticket: that of TLS 1.2 (RFC 5077 section 3.2), and the list of TLS 1.3 (RFC
/// 8446 section 4.2.11).
const SESSION_TICKET: u16 = 35;
const PRE_SHARED_KEY: u16 = 41;

/// Returns the first ticket that the `ClientHello` in the record at the start of `bytes` offers.
///
/// Returns `None` for a message that is malformed or continues in a further record, too. The TLS
/// library decides later what such a message is.
pub(super) fn offered_ticket(bytes: &[u8]) -> Option<&[u8]> {
    let (head, mut rest) = bytes.split_at_checked(RECORD_HEAD)?;
    let mut record = take(&mut rest, usize::from(u16::from_be_bytes([head[3], head[4]])))?;
    let [kind, length @ ..] = *take(&mut record, 4)?.first_chunk::<4>()?;
    if head[0] != HANDSHAKE || kind != CLIENT_HELLO {
        return None;
    }
    let mut hello =
        take(&mut record, u32::from_be_bytes([0, length[0], length[1], length[2]]) as usize)?;
    // The version and the random bytes.
    take(&mut hello, 2 + 32)?;
    let session_id = byte(&mut hello)?;
    take(&mut hello, session_id.into())?;
    let suites = word(&mut hello)?;
    take(&mut hello, suites.into())?;
    let compressions = byte(&mut hello)?;
    take(&mut hello, compressions.into())?;
    let length = word(&mut hello)?;
    let mut extensions = take(&mut hello, length.into())?;
    let mut ticket = None;
    while !extensions.is_empty() {
        let (kind, length) = (word(&mut extensions)?, word(&mut extensions)?);
        let mut content = take(&mut extensions, length.into())?;
        match kind {
            PRE_SHARED_KEY => {
                let _length_of_list = word(&mut content)?;
                let length = word(&mut content)?;
                return take(&mut content, length.into());
            }
            SESSION_TICKET if !content.is_empty() => ticket = Some(content),
            _ => {}
        }
    }
    ticket
}

fn take<'b>(bytes: &mut &'b [u8], count: usize) -> Option<&'b [u8]> {
    bytes.split_off(..count)
}

fn byte(bytes: &mut &[u8]) -> Option<u8> {
    bytes.split_off_first().copied()
}

fn word(bytes: &mut &[u8]) -> Option<u16> {
    take(bytes, 2)?.first_chunk().copied().map(u16::from_be_bytes)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rustls::version;

    use super::*;
    use crate::address::ClientAddress;
    use crate::tls::HandshakeLimits;
    use crate::tls::test_support::{TlsClients, TlsPair, tls};

    #[test]
    fn finds_the_ticket_of_a_returning_client() {
        for offered in [&version::TLS13, &version::TLS12] {
            let clients = TlsClients::new(tls(), &[offered], HandshakeLimits::new(8, 0));
            let block = ClientAddress::UNIX.block();
            assert_eq!(offered_ticket(&clients.connect(block).encrypted()), None, "{offered:?}");
            clients.connect(block).complete();
            let hello = clients.connect(block).encrypted();
            assert!(offered_ticket(&hello).is_some() && clients.tls.can_open_ticket(&hello));
            for length in 0..hello.len() {
                assert_eq!(offered_ticket(&hello[..length]), None, "{length} bytes");
            }
        }
    }

    proptest! {
        #[test]
        fn reads_any_bytes_without_a_panic(bytes: Vec<u8>) {
            offered_ticket(&bytes);
        }

        #[test]
        fn reads_a_changed_message_without_a_panic(index: usize, byte: u8, cut: usize) {
            let mut hello = TlsPair::new(tls(), &["http/1.1"]).encrypted();
            let index = index % hello.len();
            hello[index] = byte;
            hello.truncate(cut % (hello.len() + 1));
            offered_ticket(&hello);
        }
    }
}
