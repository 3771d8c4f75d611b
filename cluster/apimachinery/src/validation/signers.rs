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
    // `ValidateSignerName` returns here; the parts of a name without exactly one slash are not looked at.
    let [domain, path] = segments[..] else {
        let detail =
            "must be a fully qualified domain and path of the form 'example.com/signer-name'";
        causes.invalid(at, detail);
        return;
    };
    if domain.len() > 253 {
        causes.too_long(at, 253);
    }
    // Label by label, so that each label of the domain is limited to 63 characters, which a subdomain is not.
    check_parts(at, domain, formats::dns_label, causes);
    if !domain.contains('.') {
        let detail = "should be a domain with at least two segments separated by dots";
        causes.invalid_as(at, domain, detail);
    }
    // The path is split at dots as well, although each part may be a subdomain; the effect is that empty parts are
    // wrong.
    check_parts(at, path, formats::dns_subdomain, causes);
    // A domain (253), a slash, and a path that holds a label and a subdomain: 253 + 1 + (253 + 63 + 1).
    if at.text().len() > 571 {
        causes.too_long(at, 571);
    }
}

/// Checks the parts of a segment, up to the first that is wrong.
// Go breaks out of the loop after the first wrong part, but reports all messages about it.
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
