//! Requests for certificates, certificates, and what a genuine server says of them.

use base64::Engine;
use base64::prelude::BASE64_STANDARD as BASE64;
use proptest::prelude::*;

use super::pkcs10::{self, Request};
use super::{certificate, requested_organizations};

/// Iterates over the lines of a file: a name, data, and what the genuine server said of it.
fn answers(file: &'static str) -> impl Iterator<Item = (&'static str, Vec<u8>, &'static str)> {
    let mut lines = file.lines().skip(1).map(str::trim);
    std::iter::from_fn(move || {
        let name = lines.next()?;
        let data = BASE64.decode(lines.next()?).expect(name);
        Some((name, data, lines.next()?))
    })
}

fn requests() -> impl Iterator<Item = (&'static str, Vec<u8>, &'static str)> {
    answers(include_str!("requests.txt"))
}

fn named(name: &str) -> Vec<u8> {
    let mut found = requests().filter(|(each, ..)| *each == name);
    found.next().expect(name).1
}

fn check(data: &[u8]) -> Result<(), String> {
    Request::read(data)?.check_signature()
}

/// Returns the request of an object's `spec`.
fn request(data: &[u8]) -> String {
    BASE64.encode(format!(
        "-----BEGIN CERTIFICATE REQUEST-----\n{}\n-----END CERTIFICATE REQUEST-----\n",
        BASE64.encode(data)
    ))
}

#[test]
fn requests_are_judged_as_by_a_genuine_server() {
    // ring has no ECDSA with SHA-512.
    let cannot_be_told = "ecsha512";
    let needs_signatures = |reported: &str| {
        reported.ends_with("verification failure") || reported.ends_with("verification error")
    };
    let mut count = 0;
    for (name, data, reported) in requests() {
        let reported = if needs_signatures(reported)
            && (!cfg!(feature = "signatures") || name == cannot_be_told)
        {
            "ok"
        } else {
            reported
        };
        let found = check(&data).map_or_else(|reason| reason, |()| "ok".to_owned());
        assert_eq!(found, reported, "{name}");
        count += 1;
    }
    assert!(count > 80, "{count} requests");
}

#[test]
fn certificates_are_judged_as_by_a_genuine_server() {
    let mut count = 0;
    for (name, data, reported) in answers(include_str!("certificates.txt")) {
        let found = certificate::check_all(&data);
        let found = found.map_or_else(|reason| reason, |()| "ok".to_owned());
        assert_eq!(found, reported, "{name}");
        count += 1;
    }
    assert!(count > 80, "{count} certificates");
}

#[test]
fn what_is_no_block_of_a_request_is_refused() {
    let wrong = "PEM block type must be CERTIFICATE REQUEST";
    let block = |kind: &str| format!("-----BEGIN {kind}-----\nMAA=\n-----END {kind}-----\n");
    for text in [
        String::new(),
        "hello".to_owned(),
        block("CERTIFICATE"),
        block("NEW CERTIFICATE REQUEST"),
    ] {
        assert_eq!(pkcs10::data(&text), Err(wrong.to_owned()), "{text}");
    }
    assert!(pkcs10::data(&block("CERTIFICATE REQUEST")).is_ok());
}

#[test]
fn organizations_of_the_subject_are_read() {
    let check = |name: &str, expected: &[&str]| {
        let found = requested_organizations(&request(&named(name)));
        assert_eq!(found.expect(name), expected, "{name}");
    };
    check("masters", &["dev", "system:masters"]);
    // Two attributes in one set.
    check("multi", &["dev", "system:masters"]);
    check("empty", &[]);
    check("printable", &["a*b"]);
    check("T61", &["é"]);
    check("BMP", &["a"]);
    check("no text", &[]);
    let found = requested_organizations(&request(b"abc"));
    assert!(found.expect_err("no request").starts_with("asn1: "));
}

proptest! {
    /// Whatever is sent is answered.
    #[test]
    fn no_data_make_it_panic(data in prop::collection::vec(any::<u8>(), 0..64)) {
        prop_assert!(check(&data).is_err());
    }

    /// A request of which a byte is changed is refused or read, never a panic; read on, it is another request.
    #[test]
    fn no_change_makes_it_panic(at in 0..210_usize, byte: u8, length in 0..220_usize) {
        let mut data = named("masters");
        if let Some(place) = data.get_mut(at) {
            *place = byte;
        }
        data.truncate(length);
        let _ = check(&data);
    }

    #[test]
    fn no_change_of_a_certificate_makes_it_panic(which in 0..90_usize, at in 0..300_usize, byte: u8) {
        let mut all = answers(include_str!("certificates.txt"));
        if let Some((_, mut data, _)) = all.nth(which) {
            if let Some(place) = data.get_mut(at) {
                *place = byte;
            }
            let _ = certificate::check_all(&data);
        }
    }
}
