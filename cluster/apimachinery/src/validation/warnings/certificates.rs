//! Secrets of TLS whose certificate or key cannot be used.

use base64::Engine;
use base64::prelude::BASE64_STANDARD as BASE64;

use super::collected::Warnings;
use crate::object::Object;
use crate::validation::field::Field;

const CERTIFICATE: &str = "CERTIFICATE";
const KEY: &str = "PRIVATE KEY";

/// Warns of PEM data without a certificate or key; does not check that they match.
///
/// Source: `X509KeyPair` of Go's `crypto/tls`.
pub(super) fn check(secret: &Object, warnings: &mut Warnings) {
    if Field::of(secret, "type").text() != "kubernetes.io/tls" {
        return;
    }
    let data = Field::of(secret, "data");
    let [certificate, key] = ["tls.crt", "tls.key"]
        // Data that is no base64 was refused when the Secret was read.
        .map(|name| blocks(&BASE64.decode(data.text_of(name)).unwrap_or_default()));
    // `X509KeyPair` returns one error, and reads the certificate before the key.
    if let Some(wrong) = wrong_certificate(&certificate).or_else(|| wrong_key(&key)) {
        warnings.add(wrong);
    }
}

fn wrong_certificate(blocks: &[String]) -> Option<String> {
    if blocks.iter().any(|kind| kind == CERTIFICATE) {
        return None;
    }
    Some(match blocks {
        [] => "tls: failed to find any PEM data in certificate input".to_owned(),
        // The hint appears only if there is exactly one block, and it is a key.
        [one] if one.ends_with(KEY) => {
            "tls: failed to find certificate PEM data in certificate input, but did find a \
             private key; PEM inputs may have been switched"
                .to_owned()
        }
        others => format!(
            "tls: failed to find \"CERTIFICATE\" PEM block in certificate input after skipping PEM blocks of the \
             following types: [{}]",
            others.join(" ")
        ),
    })
}

fn wrong_key(blocks: &[String]) -> Option<String> {
    // Any type of key counts: `RSA PRIVATE KEY`, `EC PRIVATE KEY`.
    let is_key = |kind: &String| kind == KEY || kind.ends_with(" PRIVATE KEY");
    if blocks.iter().any(is_key) {
        return None;
    }
    Some(match blocks {
        [] => "tls: failed to find any PEM data in key input".to_owned(),
        [one] if one == CERTIFICATE => {
            "tls: found a certificate rather than a key in the PEM for the private key".to_owned()
        }
        others => format!(
            "tls: failed to find PEM block with type ending in \"PRIVATE KEY\" in key input after skipping PEM blocks of \
             the following types: [{}]",
            others.join(" ")
        ),
    })
}

/// Returns the types of the PEM blocks in a text.
fn blocks(text: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(text);
    let mut found = Vec::new();
    let mut open: Option<&str> = None;
    for line in text.lines().map(str::trim_end) {
        let kind = |prefix| line.strip_prefix(prefix)?.strip_suffix("-----");
        if let Some(kind) = kind("-----BEGIN ") {
            open = Some(kind);
        // Go's decoder skips a block whose end has another type than its beginning.
        } else if let Some(kind) = kind("-----END ").filter(|kind| open == Some(*kind)) {
            found.push(kind.to_owned());
            open = None;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn pairs_that_go_cannot_read_are_named() {
        let block = |kind: &str| format!("-----BEGIN {kind}-----\nYQ==\n-----END {kind}-----\n");
        let check = |certificate: &str, key: &str| {
            let [certificate, key] = [certificate, key].map(|text| BASE64.encode(text));
            let secret = json!({"type": "kubernetes.io/tls",
                "data": {"tls.crt": certificate, "tls.key": key}});
            let mut warnings = Warnings::default();
            super::check(secret.as_object().unwrap(), &mut warnings);
            warnings.into_list().join("; ")
        };
        let (certificate, key) = (block("CERTIFICATE"), block("EC PRIVATE KEY"));
        assert_eq!(check(&certificate, &key), "");
        let none = "tls: failed to find any PEM data in certificate input";
        assert_eq!(check("a", "b"), none);
        let switched = check(&key, &certificate);
        assert!(
            switched.ends_with("PEM inputs may have been switched"),
            "{switched}"
        );
        let twice = check(&certificate, &certificate);
        assert!(
            twice.starts_with("tls: found a certificate rather"),
            "{twice}"
        );
        let other = check(&block("A"), &key);
        assert!(other.ends_with("the following types: [A]"), "{other}");
    }
}
