//! How long a watch may be silent.

use std::time::Duration;

use tokio::time::Instant;

/// How long past its own timeout a watch may be silent.
const SLACK: Duration = Duration::from_secs(10);

/// How long a watch that has shown bookmarks may be silent at first: the API server sends one a minute, as long as etcd
/// says how far it is.
const BOOKMARK_SILENCE: Duration = Duration::from_secs(90);

/// The longest silence of a quiet kind: by its defaults etcd says how far it is every ten minutes, and for a watch on
/// which nothing has moved since it was opened there is no bookmark.
const LONGEST_SILENCE: Duration = Duration::from_secs(600);

/// What comes within this time is as frequent as the API server promises.
const FREQUENT: Duration = Duration::from_secs(120);

/// How much silence is taken for a quiet kind rather than for a dead connection, as the server's own bookmarks show.
///
/// It doubles with each watch that says nothing, 90 s to ten minutes. A dead connection is not found this way, but by
/// the tests of the connection itself.
#[derive(Debug)]
pub(super) struct Patience {
    /// Whether this server has shown bookmarks, so that silence means something.
    bookmarks: bool,
    silence: Duration,
    /// When a watch said something last.
    heard: Option<Instant>,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            bookmarks: false,
            silence: BOOKMARK_SILENCE,
            heard: None,
        }
    }
}

impl Patience {
    /// Returns how long a watch with a timeout of its own may be silent.
    pub(super) fn with(&self, timeout: Duration) -> Duration {
        let longest = timeout + SLACK;
        if self.bookmarks {
            self.silence.min(longest)
        } else {
            longest
        }
    }

    pub(super) fn bookmarked(&mut self) {
        self.bookmarks = true;
    }

    /// Notes that a watch said something. Where that is rare it says nothing about how rare.
    pub(super) fn heard(&mut self) {
        let now = Instant::now();
        if self.heard.is_some_and(|before| now - before <= FREQUENT) {
            self.silence = BOOKMARK_SILENCE;
        }
        self.heard = Some(now);
    }

    /// Notes that a watch was silent for as long as it may be.
    pub(super) fn ran_out(&mut self) {
        self.silence = (self.silence * 2).min(LONGEST_SILENCE);
    }
}
