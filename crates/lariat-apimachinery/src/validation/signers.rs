//! The names of signers of certificates.

use super::causes::Causes;
use super::field::Field;
use super::formats;

/// Checks the name of a signer: a domain and a path.
pub(crate) fn check_signer(at: &Field<'_>, causes: &mut Causes) {
    if !causes.check_given(at, "") {
        return;
    }
    let segments: Vec<&str> = at.text().split('/').collect();
    let [domain, path] = segments[..] else {
        let detail =
            "must be a fully qualified domain and path of the form 'example.com/signer-name'";
        causes.invalid(at, detail);
        return;
    };
    if domain.len() > 253 {
        causes.too_long(at, 253);
    }
    check_parts(at, domain, formats::dns_label, causes);
    if !domain.contains('.') {
        let detail = "should be a domain with at least two segments separated by dots";
        causes.invalid_as(at, domain, detail);
    }
    check_parts(at, path, formats::dns_subdomain, causes);
    if at.text().len() > 571 {
        causes.too_long(at, 571);
    }
}

/// Checks the parts of a segment, up to the first that is wrong.
fn check_parts(at: &Field<'_>, segment: &str, format: formats::Format, causes: &mut Causes) {
    let mut parts = segment.split('.').map(|part| (part, format(part)));
    let Some((part, broken)) = parts.find(|(_, broken)| !broken.is_empty()) else {
        return;
    };
    for message in broken {
        let detail = format!("validating label {part:?}: {message}");
        causes.invalid_as(at, segment, &detail);
    }
}
