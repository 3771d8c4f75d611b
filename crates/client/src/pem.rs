//! Certificates in PEM.

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;

const BEGIN: &str = "-----BEGIN ";
const END: &str = "-----END ";
const DASHES: &str = "-----";

/// Returns the certificates of a text in DER; other blocks are skipped.
///
/// A file that is being written ends within a block, which is an error. The error continues "a file that".
pub(crate) fn certificates(pem: &[u8]) -> Result<Vec<Vec<u8>>, &'static str> {
    let text = String::from_utf8_lossy(pem);
    let mut found = Vec::new();
    let mut rest = &text[..];
    while let Some(start) = rest.find(BEGIN) {
        let block = &rest[start + BEGIN.len()..];
        let (label, body) = block
            .split_once(DASHES)
            .ok_or("ends within a block of PEM")?;
        let end = format!("{END}{label}{DASHES}");
        let (body, after) = body.split_once(&end).ok_or("ends within a block of PEM")?;
        if label == "CERTIFICATE" {
            let body: String = body.split_whitespace().collect();
            found.push(
                BASE64
                    .decode(body)
                    .map_err(|_| "has a certificate that is not base64")?,
            );
        }
        rest = after;
    }
    if rest.lines().any(|line| line.starts_with(DASHES)) {
        return Err("ends within a block of PEM");
    }
    if found.is_empty() {
        return Err("has no certificate in PEM");
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn certificates_are_found_among_other_blocks() {
        let pem = "# ours\n-----BEGIN CERTIFICATE-----\nAQID\nBA==\n-----END CERTIFICATE-----\n\
            -----BEGIN PUBLIC KEY-----\nAQ==\n-----END PUBLIC KEY-----\r\n\
            -----BEGIN CERTIFICATE-----\r\nBQ==\r\n-----END CERTIFICATE-----";
        assert_eq!(
            certificates(pem.as_bytes()),
            Ok(vec![vec![1, 2, 3, 4], vec![5]])
        );
    }

    #[test]
    fn half_written_files_have_no_certificates() {
        let whole = "-----BEGIN CERTIFICATE-----\nAQID\n-----END CERTIFICATE-----\n";
        let twice = format!("{whole}{whole}");
        for end in 0..whole.len() - 1 {
            assert!(certificates(&whole.as_bytes()[..end]).is_err(), "{end}");
        }
        for end in whole.len() + DASHES.len()..twice.len() - 1 {
            assert!(certificates(&twice.as_bytes()[..end]).is_err(), "{end}");
        }
    }
}
