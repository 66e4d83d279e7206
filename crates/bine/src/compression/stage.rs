//! Compression under one configuration: changes each kind of response.

use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use bine_compression::{HeadChange, Level, ReplyHead, compress};
use bine_http::BodyFraming;
use bine_http::Coding;
use bine_server::{FilePart, Incoming, Stream};

use super::cache::{Cache, ContentKey};
use super::choices::CompressionChoices;
use super::counters::Counters;
use super::decision::{ClientWish, ContentRules, Decision};
use super::file_queue::{FileJob, FileQueue};
use super::mode::CompressionMode;
use super::path_rules::{PathRule, mode_at};
use super::stream_encoder::StreamEncoder;
use super::written::{change_head, content_of, replace};
use crate::response_notes::ResponseNotes;

/// The longest content that is compressed as a whole, in bytes: a value of the program or a file.
const LONGEST_CONTENT: u64 = 8 << 20;

/// The parts that all configurations share.
pub(super) struct SharedParts {
    pub(super) counters: Arc<Counters>,
    cache: Arc<Cache>,
    files: FileQueue,
    hashes: RandomState,
}

impl SharedParts {
    pub(super) fn new(cache: usize) -> Self {
        let cache = Arc::new(Cache::new(cache));
        let files = FileQueue::new(Arc::clone(&cache));
        Self { counters: Arc::default(), cache, files, hashes: RandomState::new() }
    }
}

/// Compression under one configuration.
pub(super) struct Stage {
    mode: CompressionMode,
    path_rules: Vec<PathRule>,
    codings: Vec<Coding>,
    level: Level,
    content: ContentRules,
    streams: usize,
    shared: Arc<SharedParts>,
}

/// A written reply that takes too long to encode on an event loop.
pub(super) struct SlowReply {
    pub(super) bytes: Vec<u8>,
    coding: Coding,
    key: Option<ContentKey>,
}

impl Stage {
    pub(super) fn new(choices: CompressionChoices, shared: Arc<SharedParts>) -> Self {
        let CompressionChoices { mode, rules, mut codings, level, least, types, streams, .. } =
            choices;
        if codings.is_empty() {
            codings = Coding::ALL.to_vec();
        }
        let content = ContentRules { types, least };
        Self { mode, path_rules: rules, codings, level, content, streams, shared }
    }

    /// Whether no response is compressed.
    pub(super) fn is_off(&self) -> bool {
        self.mode == CompressionMode::Off && self.path_rules.is_empty()
    }

    /// The least length of content in bytes that is compressed.
    pub(super) const fn least(&self) -> u64 {
        self.content.least
    }

    /// The wish of a client that has preferences.
    pub(super) fn wish_of(&self, request: &Incoming<'_>) -> ClientWish {
        let head = &request.head;
        let host = head.authority();
        let mode = mode_at(&self.path_rules, self.mode, host, || head.path());
        let place = self.shared.hashes.hash_one((host, head.path()));
        ClientWish::of(request, &self.codings, mode, place)
    }

    /// Whether the reply whose head begins at `mark` will be encoded.
    pub(super) fn encodes(&self, wish: &ClientWish, notes: ResponseNotes, reply: &[u8]) -> bool {
        ReplyHead::parse(reply).is_some_and(|head| {
            matches!(self.content.decide(&head, wish, notes), Decision::Encode(_))
        })
    }

    /// Encodes the reply at `mark`, which is complete. Returns it if that takes too long for an event
    /// loop, unless the thread `may_block`.
    pub(super) fn encode_written(
        &self,
        wish: &ClientWish,
        notes: ResponseNotes,
        (bytes, mark): (&mut Vec<u8>, usize),
        may_block: bool,
    ) -> Option<SlowReply> {
        let reply = bytes.get(mark..)?;
        let head = ReplyHead::parse(reply)?;
        if head.status() == 304 {
            let held = wish.if_none_match.as_ref().filter(|_| wish.coding.is_some());
            if held.is_some_and(|tags| head.is_held_encoded(tags)) {
                change_head(bytes, mark, HeadChange::NotModified(true));
            }
            return None;
        }
        let coding = match self.content.decide(&head, wish, notes) {
            Decision::Leave => return None,
            Decision::Vary => {
                change_head(bytes, mark, HeadChange::Vary);
                return None;
            }
            Decision::Encode(coding) => coding,
        };
        if head.content_length().is_some_and(|length| length > LONGEST_CONTENT) {
            return None;
        }
        if wish.is_head {
            change_head(bytes, mark, HeadChange::WithoutContent(coding));
            return None;
        }
        let content = content_of(&head, reply)?;
        let length = content.len() as u64;
        if !(self.content.least..=LONGEST_CONTENT).contains(&length) {
            return None;
        }
        let tag = head.strong_tag().filter(|_| self.shared.cache.is_on());
        let key = tag.map(|tag| {
            let hash = self.shared.hashes.hash_one(&content);
            ContentKey { tag: tag.into(), length, hash }
        });
        if let Some(cached) = key.as_ref().and_then(|key| self.cached(key, coding)) {
            let head = head.changed(HeadChange::Whole(coding, cached.len() as u64));
            replace(bytes, mark, &head, &cached);
            return None;
        }
        if !may_block && content.len() > self.level.brief_length(coding) {
            return Some(SlowReply { bytes: bytes.split_off(mark), coding, key });
        }
        let (head, content) = self.encoded(&head, &content, coding, key)?;
        replace(bytes, mark, &head, &content);
        None
    }

    /// Encodes a reply on a thread that may block. `None`: it stays as it is.
    pub(super) fn encode_slow(&self, reply: &SlowReply) -> Option<Vec<u8>> {
        let head = ReplyHead::parse(&reply.bytes)?;
        let content = content_of(&head, &reply.bytes)?;
        let (mut head, content) = self.encoded(&head, &content, reply.coding, reply.key.clone())?;
        head.extend_from_slice(&content);
        Some(head)
    }

    /// The head and the encoded content. `None`: there is too little memory to encode it.
    fn encoded(
        &self,
        head: &ReplyHead<'_>,
        content: &[u8],
        coding: Coding,
        key: Option<ContentKey>,
    ) -> Option<(Vec<u8>, Arc<[u8]>)> {
        let encoded: Arc<[u8]> = compress(coding, self.level, content).ok()?.into();
        self.shared.counters.add(coding, content.len() as u64, encoded.len() as u64);
        if let Some(key) = key {
            self.shared.cache.add(key, coding, Arc::clone(&encoded));
        }
        Some((head.changed(HeadChange::Whole(coding, encoded.len() as u64)), encoded))
    }

    /// Changes the reply at `mark`, which a file follows. Returns true if the reply has the content of
    /// the file already.
    pub(super) fn encode_file(
        &self,
        wish: &ClientWish,
        notes: ResponseNotes,
        (bytes, mark): (&mut Vec<u8>, usize),
        part: &FilePart,
    ) -> bool {
        let Some(head) = bytes.get(mark..).and_then(ReplyHead::parse) else { return false };
        let is_whole = part.offset == 0 && head.content_length() == Some(part.length);
        if !is_whole || part.length > LONGEST_CONTENT || !self.shared.cache.is_on() {
            return false;
        }
        let coding = match self.content.decide(&head, wish, notes) {
            Decision::Leave => return false,
            Decision::Vary => {
                change_head(bytes, mark, HeadChange::Vary);
                return false;
            }
            Decision::Encode(coding) => coding,
        };
        // A weak tag does not identify the bytes: the file has changed within the last seconds.
        let Some(tag) = head.strong_tag() else {
            change_head(bytes, mark, HeadChange::Vary);
            return false;
        };
        let key = ContentKey { tag: tag.into(), length: part.length, hash: wish.place };
        if let Some(cached) = self.cached(&key, coding) {
            let head = head.changed(HeadChange::Whole(coding, cached.len() as u64));
            replace(bytes, mark, &head, &cached);
            return true;
        }
        self.shared.files.add(FileJob { key, coding, file: Arc::clone(&part.file) });
        change_head(bytes, mark, HeadChange::Vary);
        false
    }

    fn cached(&self, key: &ContentKey, coding: Coding) -> Option<Arc<[u8]>> {
        let found = self.shared.cache.find(key, coding)?;
        let counters = &self.shared.counters;
        counters.cached.fetch_add(1, Ordering::Relaxed);
        counters.add(coding, key.length, found.len() as u64);
        Some(found)
    }

    /// Changes the head at `mark` and the stream that follows it.
    pub(super) fn encode_stream(
        &self,
        wish: &ClientWish,
        notes: ResponseNotes,
        (bytes, mark): (&mut Vec<u8>, usize),
        stream: Stream,
    ) -> Stream {
        let Some(head) = bytes.get(mark..).and_then(ReplyHead::parse) else { return stream };
        // The framing of a stream whose length is known would be wrong afterwards.
        if head.content_length().is_some() || stream.framing() == BodyFraming::Preframed {
            return stream;
        }
        let coding = match self.content.decide(&head, wish, notes) {
            Decision::Leave => return stream,
            Decision::Vary => {
                change_head(bytes, mark, HeadChange::Vary);
                return stream;
            }
            Decision::Encode(coding) => coding,
        };
        if stream.framing() == BodyFraming::Empty {
            change_head(bytes, mark, HeadChange::Streamed(coding));
            return stream;
        }
        let counters = &self.shared.counters;
        let most = (self.streams, wish.block);
        let Some(encoder) = StreamEncoder::new(coding, self.level, most, counters) else {
            change_head(bytes, mark, HeadChange::Vary);
            return stream;
        };
        change_head(bytes, mark, HeadChange::Streamed(coding));
        stream.with_encoder(Box::new(encoder))
    }
}
