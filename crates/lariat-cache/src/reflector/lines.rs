//! Cutting a stream of bytes into lines.

use bytes::{Buf, Bytes, BytesMut};

/// Bytes of a stream up to the line feeds in it.
#[derive(Debug, Default)]
pub(super) struct Lines {
    buffer: BytesMut,
    /// Bytes at the front that hold no line feed.
    searched: usize,
}

impl Lines {
    /// Copies a chunk: to keep a part of it would keep all of the connection's read buffer, which then makes another.
    pub(super) fn push(&mut self, chunk: &[u8]) {
        self.buffer.extend_from_slice(chunk);
    }

    /// Returns how many bytes wait.
    pub(super) fn len(&self) -> usize {
        self.buffer.len()
    }

    /// Takes the next whole line, without its line feed; what is not a whole line stays.
    ///
    /// Bytes that are not UTF-8 are replaced, as Go's decoder does and as is done in lists: an object would else be
    /// readable or not by the way it came.
    pub(super) fn next(&mut self) -> Option<Bytes> {
        let Some(at) = memchr::memchr(b'\n', &self.buffer[self.searched..]) else {
            self.searched = self.buffer.len();
            return None;
        };
        let line = self.buffer.split_to(self.searched + at).freeze();
        self.buffer.advance(1);
        self.searched = 0;
        Some(match std::str::from_utf8(&line) {
            Ok(_) => line,
            Err(_) => String::from_utf8_lossy(&line).into_owned().into(),
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn bytes_that_are_not_utf_8_are_replaced() {
        let mut lines = Lines::default();
        lines.push(b"{\"a\":\"\xc3\xa4\xff\"}\n");
        assert_eq!(lines.next().unwrap(), "{\"a\":\"ä\u{fffd}\"}");
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
                lines.push(&text.as_bytes()[start..end]);
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
