//! Judging bookmarks that do not move: the server may have stopped to watch.
//!
//! A bookmark shows that the connection works and that the watch has reported all changes up to its version. A server
//! that has lost etcd, or whose watch cache hangs, goes on sending bookmarks of the same version.

use std::cmp::Ordering;
use std::time::Duration;

use lariat_core::ResourceVersion;
use tokio::time::Instant;

/// How long a bookmark may lie behind a write of this process to the kind.
///
/// The API server sends bookmarks once a minute, and its watch cache follows etcd within moments.
const BEHIND: Duration = Duration::from_secs(120);

/// What a bookmark shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum BookmarkSign {
    /// The watch goes on.
    Moves,
    /// The watch is where it was, although the server has moved.
    ///
    /// Kinds may be stored in an etcd of their own (`--etcd-servers-overrides`), and etcd may report its progress every
    /// ten minutes only, so this is a reason to ask, and no proof.
    Stands,
    /// The watch is behind a write of this process to the same kind, which was answered this long ago.
    Behind {
        written: ResourceVersion,
        since: Duration,
    },
}

/// The own write that bookmarks have not reached.
#[derive(Debug, Default)]
pub(super) struct Standstill {
    unseen: Option<(ResourceVersion, Instant)>,
    /// The write that the watch was last found behind, until a bookmark reaches it.
    behind: Option<ResourceVersion>,
}

impl Standstill {
    /// Returns whether the watch has not reached the write that it was last found behind.
    pub(super) fn is_behind(&self) -> bool {
        self.behind.is_some()
    }

    /// Judges a bookmark.
    ///
    /// `before` is the version of the watch before it, `written` the newest write of this process to the kind that no
    /// watch has confirmed, and `server_moved` means that another kind has got a later version since.
    pub(super) fn judge(
        &mut self,
        version: &ResourceVersion,
        before: &ResourceVersion,
        written: Option<ResourceVersion>,
        server_moved: bool,
    ) -> BookmarkSign {
        let is_behind =
            |written: &ResourceVersion| version.compare(written) == Some(Ordering::Less);
        self.unseen.take_if(|(unseen, _)| !is_behind(unseen));
        self.behind.take_if(|behind| !is_behind(behind));
        let now = Instant::now();
        match (&mut self.unseen, written.filter(is_behind)) {
            (Some((written, at)), _) if now - *at >= BEHIND => {
                let since = now - *at;
                // Reported again after the same time, and not with each further bookmark.
                *at = now;
                let written = written.clone();
                self.behind = Some(written.clone());
                return BookmarkSign::Behind { written, since };
            }
            (unseen @ None, Some(written)) => *unseen = Some((written, now)),
            _ => {}
        }
        if version == before && server_moved {
            BookmarkSign::Stands
        } else {
            BookmarkSign::Moves
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::time;

    use super::*;

    fn judge(standstill: &mut Standstill, version: u64, written: Option<u64>) -> BookmarkSign {
        let written = written.map(ResourceVersion::from);
        standstill.judge(&version.into(), &0.into(), written, true)
    }

    #[tokio::test(start_paused = true)]
    async fn bookmark_behind_own_write_is_stale_after_two_minutes() {
        let mut standstill = Standstill::default();
        assert_eq!(
            judge(&mut standstill, 5, Some(7)),
            BookmarkSign::Moves,
            "the watch may be about to report it"
        );
        time::advance(BEHIND).await;
        let behind = BookmarkSign::Behind {
            written: 7.into(),
            since: BEHIND,
        };
        assert_eq!(judge(&mut standstill, 6, Some(9)), behind);
        time::advance(BEHIND / 2).await;
        assert_eq!(judge(&mut standstill, 6, Some(9)), BookmarkSign::Moves);
        // The watch has passed it.
        time::advance(BEHIND).await;
        assert_eq!(judge(&mut standstill, 8, None), BookmarkSign::Moves);
        assert_eq!(judge(&mut standstill, 8, None), BookmarkSign::Moves);
    }

    #[tokio::test(start_paused = true)]
    async fn bookmark_of_same_version_stands_while_server_moves() {
        for (version, server_moved, expected) in [
            (5, true, BookmarkSign::Stands),
            (5, false, BookmarkSign::Moves),
            (6, true, BookmarkSign::Moves),
        ] {
            let mut standstill = Standstill::default();
            let sign = standstill.judge(&version.into(), &5.into(), None, server_moved);
            assert_eq!(sign, expected, "{version} {server_moved}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn versions_that_are_no_numbers_make_no_claim() {
        let mut standstill = Standstill::default();
        let [a, b] = ["a", "b"].map(ResourceVersion::new);
        for _ in 0..3 {
            let sign = standstill.judge(&a, &a, Some(b.clone()), false);
            assert_eq!(sign, BookmarkSign::Moves);
            time::advance(BEHIND).await;
        }
    }
}
