//! An open watch: its bytes as lines, its lines as events, and how long it may be silent.

use std::borrow::Cow;
use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use futures::FutureExt;
use http_body::Frame;
use http_body_util::BodyExt;
use lariat_core::{ResourceVersion, StrictObject, without_values};
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::time::{self, Instant};

use super::error::{ReflectorError, Status};
use super::source::{SourceBody, SourceError};

/// The most bytes of a line, without its line feed, as in client-go.
///
/// etcd takes objects of 1.5 MiB by default.
const LINE_LIMIT: usize = 16 * 1024 * 1024;

/// How many available bytes are read before they are processed.
const BATCH: usize = 256 * 1024;

/// How long bytes of a long initial list are gathered if few are available.
const GATHER: Duration = Duration::from_millis(1);
/// An initial list of more bytes is long; fewer bytes are gathered.
const LOAD: usize = 64 * 1024;

/// The bytes of a watch as lines, with a limit on silence.
pub(super) struct WatchStream {
    body: SourceBody,
    lines: Lines,
    /// The number of received bytes.
    received: usize,
    /// How many of them [`newly_received`](Self::newly_received) has returned.
    counted: usize,
    /// How long nothing may arrive before the watch is taken for dead.
    silence_limit: Duration,
    /// When something new last arrived, and before that.
    heard: [Instant; 2],
    /// The end of the watch; returned after the lines before it.
    end: Option<End>,
}

/// How a watch ended.
pub(super) type End = Result<(), ReflectorError>;

impl WatchStream {
    /// Reads a watch that may be silent for at most `silence_limit`.
    pub(super) fn new(body: SourceBody, silence_limit: Duration) -> Self {
        Self {
            body,
            lines: Lines::default(),
            received: 0,
            counted: 0,
            silence_limit,
            heard: [Instant::now(); 2],
            end: None,
        }
    }

    /// Waits for bytes and reads all that are available; returns the end of the watch.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: what a dropped call has read is returned by the next one, without waiting.
    pub(super) async fn read(&mut self) -> Option<End> {
        self.read_within(None).await
    }

    /// Reads like [`read`](Self::read), with another limit for an initial list.
    ///
    /// The bytes of a long list that arrive within a millisecond are read together.
    pub(super) async fn read_within(&mut self, silence_limit: Option<Duration>) -> Option<End> {
        // A call that was dropped while it gathered more has left lines behind.
        if self.received > self.counted {
            return None;
        }
        // The end was read together with lines, which have been processed by now.
        if let Some(end) = self.end.take() {
            return Some(end);
        }
        // An initial list may be silent for less time than a watch, never for more.
        let after = silence_limit
            .unwrap_or(self.silence_limit)
            .min(self.silence_limit);
        let [heard, _] = self.heard;
        let Ok(first) = time::timeout_at(heard + after, self.body.frame()).await else {
            let verb = "watch";
            return Some(Err(ReflectorError::Silent { verb, after }));
        };
        self.heard = [Instant::now(), heard];
        self.take_in(first);
        let is_long = self.received >= LOAD;
        if silence_limit.is_some() && is_long && self.end.is_none() && self.lines.len() < LOAD {
            // Each event arrives separately, and waking up for each costs more than parsing it.
            time::sleep(GATHER).await;
        }
        // Without waiting: one wake-up processes everything that is available, as one batch.
        while self.end.is_none()
            && self.lines.len() < BATCH
            && let Some(next) = self.body.frame().now_or_never()
        {
            self.take_in(next);
        }
        None
    }

    fn take_in(&mut self, frame: Option<Result<Frame<Bytes>, SourceError>>) {
        match frame {
            // Returned by the next call, after the lines that came before the end.
            None => self.end = Some(Ok(())),
            Some(Ok(frame)) => {
                let data = frame.data_ref().map_or(&[][..], |data| data);
                self.received += data.len();
                if self.lines.push(data).is_err() {
                    let (verb, part, limit) = ("watch", "line", LINE_LIMIT);
                    self.end = Some(Err(ReflectorError::TooLarge { verb, part, limit }));
                }
            }
            Some(Err(source)) => {
                let verb = "watch";
                self.end = Some(Err(ReflectorError::Cut { verb, source }));
            }
        }
    }

    /// Returns the number of bytes that were received since the last call.
    pub(super) fn newly_received(&mut self) -> usize {
        let before = std::mem::replace(&mut self.counted, self.received);
        self.received - before
    }

    pub(super) fn next_line(&mut self) -> Option<Bytes> {
        self.lines.next()
    }

    /// Records that what arrived last was nothing new, so that it does not interrupt the silence.
    pub(super) fn heard_nothing_new(&mut self) {
        let [_, before] = self.heard;
        self.heard = [before; 2];
    }

    /// Changes how long nothing may arrive.
    pub(super) fn set_silence_limit(&mut self, silence_limit: Duration) {
        self.silence_limit = silence_limit;
    }
}

/// The error of a line above the limit.
#[derive(Debug)]
pub(super) struct LongLine;

/// Buffers the bytes of a stream and splits them at line feeds.
#[derive(Debug, Default)]
pub(super) struct Lines {
    buffer: BytesMut,
    /// How many bytes at the front were searched and contain no line feed.
    searched: usize,
}

impl Lines {
    /// Appends a chunk, copied: a slice would keep the whole read buffer of the connection alive.
    ///
    /// Fails if a line is too long; then its beginning is dropped, and nothing more may be appended.
    pub(super) fn push(&mut self, chunk: &[u8]) -> Result<(), LongLine> {
        for piece in chunk.chunks(LINE_LIMIT) {
            self.buffer.extend_from_slice(piece);
            self.check_length()?;
        }
        Ok(())
    }

    fn check_length(&mut self) -> Result<(), LongLine> {
        if self.buffer.len() <= LINE_LIMIT {
            return Ok(());
        }
        // Seldom: only a buffer of this size is searched again, for its last line feed and the lines before it.
        let mut start = 0;
        for end in memchr::memchr_iter(b'\n', &self.buffer).chain([self.buffer.len()]) {
            if end - start > LINE_LIMIT {
                self.buffer.truncate(start);
                self.searched = self.searched.min(start);
                return Err(LongLine);
            }
            start = end + 1;
        }
        Ok(())
    }

    /// Returns the number of buffered bytes.
    pub(super) fn len(&self) -> usize {
        self.buffer.len()
    }

    /// Returns the next complete line, without its line feed.
    ///
    /// Invalid UTF-8 is replaced, as Go's decoder and [`page`](super::page) do. Otherwise an object would be readable
    /// or not depending on whether it was listed or watched.
    pub(super) fn next(&mut self) -> Option<Bytes> {
        let Some(at) = memchr::memchr(b'\n', &self.buffer[self.searched..]) else {
            // A large object arrives in many parts; only new bytes are searched next time.
            self.searched = self.buffer.len();
            return None;
        };
        let line = self.buffer.split_to(self.searched + at).freeze();
        self.buffer.advance(1);
        self.searched = 0;
        // Valid in nearly all cases, and then without a copy.
        Some(match std::str::from_utf8(&line) {
            Ok(_) => line,
            Err(_) => String::from_utf8_lossy(&line).into_owned().into(),
        })
    }
}

/// A line of a watch; its object is not parsed yet.
#[derive(Debug)]
pub(super) enum WatchEvent<'a> {
    /// The object was added.
    Added(&'a [u8]),
    /// The object changed.
    Modified(&'a [u8]),
    /// The object was deleted; this was its last state.
    Deleted(&'a [u8]),
    /// The watch has reported all changes up to a version.
    Bookmark {
        version: ResourceVersion,
        /// Whether it is the end marker of a watch list.
        ends_initial: bool,
    },
    /// An error event: the watch cannot continue.
    Error(ReflectorError),
}

#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow, rename = "type")]
    event: Cow<'a, str>,
    #[serde(borrow)]
    object: &'a RawValue,
}

#[derive(Deserialize)]
struct Bookmark<'a> {
    #[serde(borrow)]
    metadata: StrictObject<BookmarkMetadata<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct BookmarkMetadata<'a> {
    #[serde(borrow)]
    resource_version: Cow<'a, str>,
    #[serde(default)]
    annotations: Option<StrictObject<Annotations>>,
}

#[derive(Deserialize)]
struct Annotations {
    #[serde(default, rename = "k8s.io/initial-events-end")]
    initial_events_end: Option<String>,
}

/// The form of a watch's lines.
///
/// API servers write the type before the object and nothing after it. Then the end of the line is the end of the
/// object, which need not be searched for. The first line with an object is parsed as JSON, and shows whether that
/// holds.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) enum LineForm {
    #[default]
    Unknown,
    Usual,
    Other,
}

impl LineForm {
    /// Parses a line; the error describes what is wrong with it.
    ///
    /// The object itself is not checked; its reader does that.
    pub(super) fn read<'a>(&mut self, line: &'a [u8]) -> Result<WatchEvent<'a>, String> {
        match self {
            Self::Usual => WatchEvent::parse(line),
            Self::Other => WatchEvent::envelope(line),
            Self::Unknown => {
                let event = WatchEvent::envelope(line)?;
                // Bookmarks and errors do not show the form: only a line with an object does.
                if let Some(usual) = WatchEvent::usual(line) {
                    let is_usual = usual.object() == event.object();
                    *self = if is_usual { Self::Usual } else { Self::Other };
                }
                Ok(event)
            }
        }
    }
}

impl<'a> WatchEvent<'a> {
    /// Returns the object of an event; a bookmark and an error have none.
    pub(super) fn object(&self) -> Option<&'a [u8]> {
        match self {
            Self::Added(object) | Self::Modified(object) | Self::Deleted(object) => Some(object),
            Self::Bookmark { .. } | Self::Error(_) => None,
        }
    }

    /// Splits a line in the API server's form, without a pass over all of it.
    ///
    /// If the line has a member after the object, the returned object includes that member.
    fn usual(line: &'a [u8]) -> Option<Self> {
        let line = line.trim_ascii_end();
        let object = |beginning: &[u8]| {
            let object = line.strip_prefix(beginning)?.strip_suffix(b"}")?;
            // If another member follows that ends with a brace too, the reader of the object fails, and a parser
            // decides.
            object.ends_with(b"}").then_some(object)
        };
        let modified = object(br#"{"type":"MODIFIED","object":"#).map(Self::Modified);
        modified
            .or_else(|| object(br#"{"type":"ADDED","object":"#).map(Self::Added))
            .or_else(|| object(br#"{"type":"DELETED","object":"#).map(Self::Deleted))
    }

    /// Parses a line of a server that writes nothing after objects.
    pub(super) fn parse(line: &'a [u8]) -> Result<Self, String> {
        Self::usual(line).map_or_else(|| Self::envelope(line), Ok)
    }

    /// Parses a line again that looks usual but could not be read.
    pub(super) fn unusual(line: &'a [u8]) -> Option<Self> {
        // A line of any other form went through the parser already.
        Self::usual(line)?;
        Self::envelope(line).ok()
    }

    fn envelope(line: &'a [u8]) -> Result<Self, String> {
        let envelope: Envelope<'a> = read(line)?;
        let object = envelope.object.get().as_bytes();
        match &*envelope.event {
            "ADDED" => Ok(Self::Added(object)),
            "MODIFIED" => Ok(Self::Modified(object)),
            "DELETED" => Ok(Self::Deleted(object)),
            "BOOKMARK" => {
                let Bookmark { metadata } = read(object)?;
                let StrictObject(metadata) = metadata;
                let marker = metadata
                    .annotations
                    .and_then(|all| all.0.initial_events_end);
                Ok(Self::Bookmark {
                    version: ResourceVersion::new(&metadata.resource_version),
                    ends_initial: marker.as_deref() == Some("true"),
                })
            }
            "ERROR" => {
                let status: Status = read(object)?;
                Ok(Self::Error(status.into_error("watch")))
            }
            other => Err(format!("unknown event type {other:?}")),
        }
    }
}

fn read<'a, T: Deserialize<'a>>(json: &'a [u8]) -> Result<T, String> {
    match serde_json::from_slice(json) {
        Ok(StrictObject(read)) => Ok(read),
        Err(error) => Err(without_values(&error.to_string())),
    }
}

/// How long after its own timeout a watch may be silent.
const SLACK: Duration = Duration::from_secs(10);

/// How long a watch may be silent at first, once bookmarks have been received.
///
/// The API server sends one each minute, as long as etcd reports its progress.
const BOOKMARK_SILENCE: Duration = Duration::from_secs(90);

/// The longest silence of a kind without changes.
///
/// By default etcd reports its progress every ten minutes, and a watch without events since it was opened gets no
/// bookmark.
const LONGEST_SILENCE: Duration = Duration::from_secs(600);

/// Events within this time of each other are as frequent as bookmarks should be.
const FREQUENT: Duration = Duration::from_secs(120);

/// How long a watch may be silent before it is reopened.
///
/// The limit follows from the server's bookmarks, and doubles with each silent watch, from 90 s to ten minutes. This is
/// not what detects a dead connection: the probes of the connection do.
#[derive(Debug)]
pub(super) struct SilenceLimit {
    /// Whether this server has sent bookmarks, so that silence has a meaning.
    bookmarks: bool,
    silence: Duration,
    /// When a watch last received something.
    last_received: Option<Instant>,
}

impl Default for SilenceLimit {
    fn default() -> Self {
        Self {
            bookmarks: false,
            silence: BOOKMARK_SILENCE,
            last_received: None,
        }
    }
}

impl SilenceLimit {
    /// Returns how long a watch with the given timeout may be silent.
    pub(super) fn for_timeout(&self, timeout: Duration) -> Duration {
        let longest = timeout + SLACK;
        // Without bookmarks silence says nothing; the watch ends by its own timeout.
        if self.bookmarks {
            self.silence.min(longest)
        } else {
            longest
        }
    }

    pub(super) fn bookmarked(&mut self) {
        self.bookmarks = true;
    }

    /// Records that a watch received something.
    ///
    /// The limit is reset if that is frequent, and stays as it is otherwise.
    pub(super) fn received(&mut self) {
        let now = Instant::now();
        // One event after a long silence does not mean that the next silence is short.
        if self
            .last_received
            .is_some_and(|before| now - before <= FREQUENT)
        {
            self.silence = BOOKMARK_SILENCE;
        }
        self.last_received = Some(now);
    }

    /// Records that a watch was silent for the allowed time.
    pub(super) fn passed(&mut self) {
        self.silence = (self.silence * 2).min(LONGEST_SILENCE);
    }
}

#[cfg(test)]
mod tests {
    use futures::StreamExt;
    use proptest::prelude::*;

    use super::*;

    fn parse(line: &str) -> Result<WatchEvent<'_>, String> {
        WatchEvent::parse(line.as_bytes())
    }

    #[test]
    fn each_type_is_read() {
        let line = |event: &str| format!(r#"{{"type":"{event}","object":{{"metadata":{{}}}}}}"#);
        assert!(matches!(parse(&line("ADDED")), Ok(WatchEvent::Added(_))));
        assert!(matches!(
            parse(&line("MODIFIED")),
            Ok(WatchEvent::Modified(_))
        ));
        assert!(matches!(
            parse(&line("DELETED")),
            Ok(WatchEvent::Deleted(b"{\"metadata\":{}}"))
        ));
    }

    #[test]
    fn bookmarks_say_how_far_the_watch_is() {
        let read = |metadata: &str| {
            let line = format!(r#"{{"type":"BOOKMARK","object":{{"metadata":{{{metadata}}}}}}}"#);
            match parse(&line) {
                Ok(WatchEvent::Bookmark {
                    version,
                    ends_initial,
                }) => (version, ends_initial),
                other => panic!("{other:?}"),
            }
        };
        let version = r#""resourceVersion":"9""#;
        assert_eq!(read(version), (9.into(), false));
        let marked = r#","annotations":{"k8s.io/initial-events-end":"true"}"#;
        assert_eq!(read(&format!("{version}{marked}")), (9.into(), true));
        assert_eq!(
            read(&format!(r#"{version},"annotations":null"#)),
            (9.into(), false)
        );
    }

    #[test]
    fn expiry_is_distinguished_from_other_errors() {
        let error = |status: &str| match parse(&format!(r#"{{"type":"ERROR","object":{status}}}"#))
        {
            Ok(WatchEvent::Error(error)) => error,
            other => panic!("{other:?}"),
        };
        assert!(error(r#"{"code":410,"reason":"Expired"}"#).is_expired());
        assert!(error(r#"{"reason":"Gone"}"#).is_expired());
        assert!(!error(r#"{"code":500,"reason":"InternalError"}"#).is_expired());
    }

    #[test]
    fn what_is_no_event_says_what_is_wrong() {
        for line in [
            "",
            "{}",
            "null",
            r#"{"type":"NEW","object":{}}"#,
            r#"{"type":"ADDED"}"#,
            r#"["ADDED",{}]"#,
            r#"{"type":"BOOKMARK","object":[{"resourceVersion":"9"}]}"#,
            r#"{"type":"BOOKMARK","object":{"metadata":["9"]}}"#,
            r#"{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"9","annotations":["true"]}}}"#,
            r#"{"type":"ERROR","object":["Expired"]}"#,
        ] {
            assert!(parse(line).is_err(), "{line}");
        }
    }

    #[test]
    fn a_member_behind_the_object_is_no_part_of_it() {
        let line = br#"{"type":"ADDED","object":{"metadata":{"name":"a"}},"x":{}}"#;
        let Some(WatchEvent::Added(object)) = WatchEvent::unusual(line) else {
            panic!("it is an event");
        };
        assert_eq!(object, br#"{"metadata":{"name":"a"}}"#);
        assert!(WatchEvent::unusual(b"?").is_none());
    }

    #[test]
    fn the_first_line_about_an_object_shows_how_lines_are_written() {
        let object = r#"{"metadata":{"name":"a"},"spec":{}}"#;
        let usual = format!(r#"{{"type":"ADDED","object":{object}}}"#);
        let other = format!(r#"{{"type":"ADDED","object":{object},"x":{{}}}}"#);
        let bookmark = r#"{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"1"}}}"#;
        let spaced = format!(r#"{{"type": "ADDED","object":{object}}}"#);
        for (lines, expected) in [
            (vec![bookmark, &spaced], LineForm::Unknown),
            (vec![bookmark, &usual, &usual, &spaced], LineForm::Usual),
            (vec![bookmark, &other, &usual, &other], LineForm::Other),
        ] {
            let mut form = LineForm::default();
            for line in lines {
                let read = form.read(line.as_bytes()).unwrap().object();
                assert!(read.is_none_or(|read| read == object.as_bytes()), "{line}");
            }
            assert_eq!(form, expected);
        }
    }

    #[test]
    fn the_first_line_is_checked_to_its_end() {
        let damaged = br#"{"type":"ADDED","object":{"metadata":{"name":"a"},"spec":}}"#;
        let mut form = LineForm::default();
        assert!(form.read(damaged).is_err());
        assert_eq!(form, LineForm::Unknown);
        assert!(
            LineForm::Usual.read(damaged).is_ok(),
            "it is left to those who decode it"
        );
    }

    #[test]
    fn a_line_is_read_the_same_however_it_is_written() {
        let object = r#"{"metadata":{"name":"a"}}"#;
        let lines = [
            format!(r#"{{"type":"MODIFIED","object":{object}}}"#),
            format!(r#" {{ "type" : "MODIFIED" , "object" : {object} }} "#),
            format!(r#"{{"object":{object},"type":"MODIFIED"}}"#),
            format!("{{\"type\":\"MODIFIED\",\"object\":{object}}}\r"),
        ];
        for line in &lines {
            let Ok(WatchEvent::Modified(read)) = parse(line) else {
                panic!("{line}");
            };
            assert_eq!(read, object.as_bytes());
        }
    }

    #[test]
    fn bytes_that_are_not_utf_8_are_replaced() {
        let mut lines = Lines::default();
        lines.push(b"{\"a\":\"\xc3\xa4\xff\"}\n").unwrap();
        assert_eq!(lines.next().unwrap(), "{\"a\":\"ä\u{fffd}\"}");
    }

    #[tokio::test(start_paused = true)]
    async fn lines_of_dropped_read_are_returned_by_the_next() {
        let minute = Some(Duration::from_secs(60));
        let (sender, frames) = futures::channel::mpsc::unbounded();
        let send = |data: Vec<u8>| sender.unbounded_send(Ok(Frame::data(data.into()))).unwrap();
        let body = http_body_util::StreamBody::new(frames);
        let mut stream = WatchStream::new(body.boxed_unsync(), Duration::from_secs(60));
        // A long list, whose further lines are gathered.
        send([&[b'x'; LOAD][..], b"\n"].concat());
        assert!(stream.read_within(minute).await.is_none());
        stream.newly_received();
        while stream.next_line().is_some() {}
        send(b"end\n".to_vec());
        assert!(
            stream.read_within(minute).now_or_never().is_none(),
            "it gathers, and is dropped"
        );
        let again = stream.read_within(minute).now_or_never();
        assert!(again.is_some_and(|end| end.is_none()), "it need not wait");
        assert_eq!(stream.next_line().unwrap(), "end");
    }

    /// Counts the bytes that are buffered for an endless line, which comes in frames of a size.
    async fn buffered(frame: usize) -> (usize, ReflectorError) {
        let frames =
            futures::stream::repeat_with(move || Ok(Frame::data(Bytes::from(vec![b'x'; frame]))));
        let first = futures::stream::iter([Ok(Frame::data(Bytes::from_static(b"first\n")))]);
        let body = http_body_util::StreamBody::new(first.chain(frames)).boxed_unsync();
        let mut stream = WatchStream::new(body, Duration::from_secs(60));
        let (mut most, mut lines) = (0, 0);
        loop {
            if let Some(end) = stream.read().await {
                assert_eq!(lines, 1, "the line before the endless one is read");
                return (most, end.expect_err("it is no usual end"));
            }
            most = most.max(stream.lines.buffer.capacity());
            stream.newly_received();
            while stream.next_line().is_some() {
                lines += 1;
            }
        }
    }

    #[tokio::test]
    async fn endless_watch_line_ends_with_an_error_that_names_the_limit() {
        for frame in [1_000_000, 40 * LINE_LIMIT / 10] {
            let (most, error) = buffered(frame).await;
            assert!(most <= 3 * LINE_LIMIT, "{most} bytes of frames of {frame}");
            let expected = "watch: the answer is too large: a line has more than 16777216 bytes";
            assert_eq!(error.to_string(), expected);
        }
    }

    #[test]
    fn watch_line_of_exactly_the_limit_is_read() {
        let mut lines = Lines::default();
        let line = vec![b'x'; LINE_LIMIT];
        for _ in 0..2 {
            lines.push(&line[..LINE_LIMIT / 2]).unwrap();
            lines.push(&line[LINE_LIMIT / 2..]).unwrap();
            assert!(lines.next().is_none());
            lines.push(b"\nnext\n").unwrap();
            assert_eq!(lines.next().unwrap().len(), LINE_LIMIT);
            assert_eq!(lines.next().unwrap(), "next");
        }
        lines.push(&line).unwrap();
        assert!(lines.push(b"x\n").is_err());
        assert!(lines.next().is_none(), "its beginning is no line");
    }

    proptest! {
        #[test]
        fn lines_do_not_depend_on_how_the_bytes_arrive(
            text in "[ab\n]{0,60}", cuts in prop::collection::vec(0_usize..60, 0..6),
        ) {
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(text.len())).collect();
            cuts.sort_unstable();
            let (mut lines, mut read, mut start) = (Lines::default(), Vec::new(), 0);
            for end in cuts.into_iter().chain([text.len()]) {
                lines.push(&text.as_bytes()[start..end]).unwrap();
                start = end;
                while let Some(line) = lines.next() {
                    read.push(String::from_utf8(line.to_vec()).unwrap());
                }
            }
            let (whole, rest) = text.rsplit_once('\n').map_or(("", &*text), |(a, b)| (a, b));
            let expected: Vec<&str> =
                if text.contains('\n') { whole.split('\n').collect() } else { Vec::new() };
            prop_assert_eq!(read, expected);
            prop_assert_eq!(lines.len(), rest.len());
        }
    }
}
