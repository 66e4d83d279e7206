//! The program's own words for the messages of the framework, in the language of the visitor.

use std::borrow::Cow;
use std::sync::Arc;

use bine_http::{Reply, Status};
use bine_log as log;
use bine_server::Incoming;

use crate::accept::weight;
use crate::trace::RequestDependency;
use crate::visitor_message::{MessageText, VisitorMessage};

/// The function of [`App::messages`](crate::App::messages), with its languages.
#[derive(Clone)]
pub(crate) struct Languages {
    known: &'static [&'static str],
    words: Arc<Words>,
}

/// Returns the text of a message in a language, or `None` for the English one.
type Words = dyn Fn(&VisitorMessage, &str) -> Option<Cow<'static, str>> + Send + Sync;

/// The words for one visitor: the English ones by default.
#[derive(Clone)]
pub(crate) struct VisitorWords(Option<(Languages, &'static str)>);

/// The most ranges of an `Accept-Language` field that are read.
const MAX_RANGES: usize = 32;

impl Languages {
    pub(crate) fn new(
        known: &'static [&'static str],
        words: impl Fn(&VisitorMessage, &str) -> Option<Cow<'static, str>> + Send + Sync + 'static,
    ) -> Self {
        Self { known, words: Arc::new(words) }
    }

    /// The language for a request. Records the dependency of a live page.
    fn of(&self, request: &Incoming<'_>) -> &'static str {
        let [default, _, ..] = self.known else {
            return self.known.first().copied().unwrap_or_default();
        };
        let accepted = request.head.field_text("accept-language").unwrap_or_default();
        let language = choose(accepted, self.known).unwrap_or(default);
        RequestDependency::Header("accept_language").note(|| language.as_bytes().to_vec());
        language
    }

    /// Whether responses depend on the language of the visitor.
    const fn vary(&self) -> bool {
        self.known.len() > 1
    }
}

impl VisitorWords {
    /// The English words.
    pub(crate) const ENGLISH: Self = Self(None);

    /// The words for the visitor that has sent a request. `None`: the request is not known, so that
    /// the words are those of the first language.
    pub(crate) fn of(languages: Option<&Languages>, request: Option<&Incoming<'_>>) -> Self {
        Self(languages.map(|own| {
            let first = || own.known.first().copied().unwrap_or_default();
            (own.clone(), request.map_or_else(first, |request| own.of(request)))
        }))
    }

    /// The words for the visitor whose request has this `Accept-Language` field, which is read only
    /// if there is a choice.
    #[cfg(feature = "script")]
    pub(crate) fn accepting<'f>(
        languages: Option<&Languages>,
        accepted: impl FnOnce() -> Option<&'f str>,
    ) -> Self {
        Self(languages.map(|own| {
            let default = own.known.first().copied().unwrap_or_default();
            let chosen = || choose(accepted().unwrap_or_default(), own.known);
            let language = if own.vary() { chosen().unwrap_or(default) } else { default };
            (own.clone(), language)
        }))
    }

    /// The text of a message in the program's own words, if it has some.
    fn own(&self, message: &VisitorMessage) -> Option<Cow<'static, str>> {
        let (languages, language) = self.0.as_ref()?;
        (languages.words)(message, language)
    }

    /// The text of a message.
    pub(crate) fn say(&self, message: &VisitorMessage) -> String {
        self.own(message).map_or_else(|| message.to_string(), Cow::into_owned)
    }

    /// The title of an error page.
    pub(crate) fn title(&self, status: Status) -> String {
        self.say(&VisitorMessage::Title { status: status.code(), reason: status.reason() })
    }

    /// Whether the program has its own words.
    pub(crate) const fn are_own(&self) -> bool {
        self.0.is_some()
    }

    /// The text for this visitor.
    pub(crate) fn text<'t>(&self, text: &'t MessageText) -> Cow<'t, str> {
        let own = text.message().and_then(|message| self.own(message));
        own.unwrap_or(Cow::Borrowed(text))
    }

    /// The language of the visitor, if the program has named languages.
    pub(crate) fn language(&self) -> Option<&'static str> {
        self.0.as_ref().map(|(_, language)| *language).filter(|language| !language.is_empty())
    }

    /// Writes the header fields of a response with these words.
    pub(crate) fn write_fields(&self, reply: &mut Reply<'_>) {
        let Some((languages, language)) = &self.0 else { return };
        if languages.vary() {
            reply.static_lines("Vary: Accept-Language\r\n");
        }
        if !language.is_empty()
            && let Err(misuse) = reply.field("Content-Language", language)
        {
            log::error(format_args!("`Content-Language: {language:?}` was left out: {misuse}"));
        }
    }
}

/// Selects the language that fits an `Accept-Language` field best (RFC 9110 section 12.5.4) by the
/// lookup of RFC 4647 section 3.4. `None`: no range matches, or `*` does.
fn choose(accepted: &str, known: &[&'static str]) -> Option<&'static str> {
    let mut ranges: Vec<(&str, u16)> = accepted
        .split(',')
        .take(MAX_RANGES)
        .filter_map(|range| {
            let mut parts = range.split(';');
            Some((parts.next()?.trim(), weight(parts)?))
        })
        .filter(|(_, weight)| *weight > 0)
        .collect();
    // Stable, so that the first of equal ranges counts.
    ranges.sort_by_key(|(_, weight)| std::cmp::Reverse(*weight));
    for (range, _) in ranges {
        if range == "*" {
            return None;
        }
        let mut range = range;
        loop {
            let found = known.iter().find(|own| own.eq_ignore_ascii_case(range));
            if let Some(language) = found {
                return Some(language);
            }
            let Some((shorter, _)) = range.rsplit_once('-') else { break };
            range = shorter;
            // A single letter or digit introduces the subtag that was removed.
            while let Some((shorter, last)) = range.rsplit_once('-')
                && last.len() == 1
            {
                range = shorter;
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use bine_http::{Event, Limits, RequestParser};
    use bine_server::{Body, ClientAddress, Identity};
    use proptest::prelude::*;

    use super::*;
    use crate::trace::testing::dependencies_of;

    #[test]
    fn chooses_the_language_by_lookup() {
        let known = ["en", "de", "pt-BR", "zh-Hant"];
        for (accepted, chosen) in [
            ("", None),
            ("de", Some("de")),
            ("DE-ch-1996", Some("de")),
            ("fr, de;q=0.5, en;q=0.7", Some("en")),
            ("de;q=0, en;q=0.1", Some("en")),
            ("pt", None),
            ("pt-br", Some("pt-BR")),
            ("zh-Hant-CN-x-private1-private2", Some("zh-Hant")),
            ("zh-Hant-x-y", Some("zh-Hant")),
            ("*, de;q=0.5", None),
            ("fr, *;q=0.1", None),
            ("de;q=x, en", Some("en")),
        ] {
            assert_eq!(choose(accepted, &known), chosen, "{accepted}");
        }
    }

    /// The dependencies that words in these languages record for a live page.
    fn dependencies(known: &'static [&'static str]) -> Vec<RequestDependency> {
        let request = b"GET / HTTP/1.1\r\nHost: a\r\nAccept-Language: de\r\n\r\n";
        let mut parser = RequestParser::new();
        let Event::Head(head) = parser.receive(request, &Limits::default()).event else {
            panic!("it is a request");
        };
        let peer = ClientAddress::tcp(([127, 0, 0, 1], 1).into());
        let (body, identity, exchange) = (Body::None, &Identity::Anonymous, head.exchange());
        let incoming =
            Incoming { head, body, peer, identity, arrival: 0, has_begun: false, exchange };
        let languages = Languages::new(known, |_, language| Some(language.to_owned().into()));
        dependencies_of(|| {
            let words = VisitorWords::of(Some(&languages), Some(&incoming));
            assert_eq!(words.title(Status::GONE), *known.last().unwrap());
        })
    }

    #[test]
    fn live_pages_depend_on_the_language_only_if_there_are_several() {
        assert_eq!(dependencies(&["en", "de"]), [RequestDependency::Header("accept_language")]);
        assert_eq!(dependencies(&["en"]), []);
    }

    proptest! {
        #[test]
        fn accepts_arbitrary_fields(
            accepted: String,
            parts in prop::collection::vec("[-;,q=.*0-9a-z ]{0,6}", 0..8),
        ) {
            let _ = choose(&accepted, &["en", "de"]);
            let _ = choose(&parts.join("de-"), &["en", "de"]);
        }
    }
}
