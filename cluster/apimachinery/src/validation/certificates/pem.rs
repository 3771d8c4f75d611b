//! Blocks of data in the form of PEM.

use base64::Engine;
use base64::prelude::BASE64_STANDARD as BASE64;

/// A block: its type, whether it has headers, its data.
pub(super) struct Block {
    pub(super) kind: String,
    pub(super) has_headers: bool,
    pub(super) data: Vec<u8>,
}

/// Reads the first block of a text, and returns the text behind it.
pub(super) fn first(text: &str) -> Option<(Block, &str)> {
    let mut rest = text;
    loop {
        let start = find_line(rest, "-----BEGIN ")?;
        let (kind, behind) = rest[start..].split_once("-----")?;
        let end = format!("-----END {kind}-----");
        let Some((body, after)) = behind.split_once(&end) else {
            // Without an end, the beginning was text like any other; Go's `pem.Decode` looks for the next one.
            rest = behind;
            continue;
        };
        let (headers, encoded): (Vec<&str>, Vec<&str>) =
            // A colon does not occur in base64, so it marks a header.
            body.lines().partition(|line| line.contains(':'));
        match BASE64.decode(encoded.concat().replace([' ', '\r'], "")) {
            Ok(data) => {
                let block = Block {
                    kind: kind.to_owned(),
                    has_headers: !headers.is_empty(),
                    data,
                };
                return Some((block, after));
            }
            // What cannot be decoded is skipped without an error, as in Go.
            Err(_) => rest = after,
        }
    }
}

/// Finds a line that begins with a text, and returns the end of the text.
fn find_line(text: &str, beginning: &str) -> Option<usize> {
    let mut found = text.match_indices(beginning);
    let (at, _) = found.find(|(at, _)| *at == 0 || text.as_bytes()[at - 1] == b'\n')?;
    Some(at + beginning.len())
}
