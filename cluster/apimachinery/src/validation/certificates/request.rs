//! CertificateSigningRequests.

use std::collections::HashSet;

use base64::Engine;
use base64::prelude::BASE64_STANDARD as BASE64;

use super::pkcs10::{self, Request};
use super::{certificate, conditions, pem};
use crate::validation::causes::Causes;
use crate::validation::context::{Context, Part};
use crate::validation::field::Field;
use crate::validation::signers;

// Sorted, as the message lists them.
const USAGES: &[&str] = &[
    "any",
    "cert sign",
    "client auth",
    "code signing",
    "content commitment",
    "crl sign",
    "data encipherment",
    "decipher only",
    "digital signature",
    "email protection",
    "encipher only",
    "ipsec end system",
    "ipsec tunnel",
    "ipsec user",
    "key agreement",
    "key encipherment",
    "microsoft sgc",
    "netscape sgc",
    "ocsp signing",
    "s/mime",
    "server auth",
    "signing",
    "timestamping",
];

const LEGACY: &str = "kubernetes.io/legacy-unknown";

pub(in crate::validation) fn signing_request(context: &Context<'_>, causes: &mut Causes) {
    let (spec, old) = (context.get("spec"), context.old("spec"));
    // `validateCertificateSigningRequest`.
    check_request(&spec.get("request"), causes);
    check_usages(
        &spec.get("usages"),
        old.as_ref().map(|old| old.get("usages")),
        causes,
    );
    let signer = spec.get("signerName");
    let was_legacy = old.is_some_and(|old| old.text_of("signerName") == LEGACY);
    // `allowLegacySignerName`: the signer exists only in v1beta1, whose objects may live on.
    if signer.text() == LEGACY && !was_legacy {
        let detail = "the legacy signerName is not allowed via this API version";
        causes.invalid(&signer, detail);
    } else {
        signers::check_signer(&signer, causes);
    }
    let span = spec.get("expirationSeconds");
    if span.int().is_some_and(|seconds| seconds < 600) {
        let detail = "may not specify a duration less than 600 seconds (10 minutes)";
        causes.invalid(&span, detail);
    }
    conditions::check(context, causes);
    check_certificate(context, causes);
}

// `validateCSR`.
fn check_request(at: &Field<'_>, causes: &mut Causes) {
    let read = pkcs10::data(&decoded(at.text()));
    let checked = read.and_then(|data| Request::read(&data)?.check_signature());
    if let Err(reason) = checked {
        causes.invalid(at, &reason);
    }
}

/// Returns the organizations of the subject of a request for a certificate.
///
/// The request is that of a CertificateSigningRequest's `spec`: PEM, in base64.
///
/// # Errors
///
/// It cannot be read; the message is that of Go.
pub fn requested_organizations(request: &str) -> Result<Vec<String>, String> {
    let data = pkcs10::data(&decoded(request))?;
    Ok(Request::read(&data)?.organizations)
}

fn decoded(text: &str) -> String {
    let bytes = BASE64.decode(text).unwrap_or_default();
    String::from_utf8_lossy(&bytes).into_owned()
}

fn check_usages(usages: &Field<'_>, old: Option<Field<'_>>, causes: &mut Causes) {
    causes.check_given(usages, "");
    let (mut any, mut any_double) = (false, false);
    if let Some(old) = old {
        let texts: Vec<&str> = old.items().map(|each| each.text()).collect();
        any = texts.iter().any(|usage| !USAGES.contains(usage));
        any_double = (1..texts.len()).any(|at| texts[..at].contains(&texts[at]));
    }
    let mut seen = HashSet::new();
    for usage in usages.items() {
        if !any {
            causes.check_supported(&usage, USAGES);
        }
        if !any_double {
            causes.check_unique(&usage, &mut seen);
        }
    }
}

/// Checks the issued certificate.
fn check_certificate(context: &Context<'_>, causes: &mut Causes) {
    let at = context.get("status").get("certificate");
    let old = context.old("status").map(|old| old.get("certificate"));
    let has_changed = old.as_ref().is_none_or(|old| old.text() != at.text());
    // `allowArbitraryCertificate`: what was wrong before may be followed by what is wrong.
    let was_right = |old: &Field<'_>| certificate_wrong(&decoded(old.text())).is_ok();
    if has_changed
        && old.as_ref().is_none_or(was_right)
        && let Err(error) = certificate_wrong(&decoded(at.text()))
    {
        causes.invalid_as(&at, "<certificate data>", &error);
    }
    let Some(old) = old.filter(|_| has_changed) else {
        return;
    };
    if context.part != Part::Status {
        // Only the signer sets it, through the status.
        causes.forbidden(&at, "updates may not set certificate content");
    } else if !old.is_void() {
        let detail = "updates may not modify existing certificate content";
        causes.forbidden(&at, detail);
    }
}

fn certificate_wrong(text: &str) -> Result<(), String> {
    let mut rest = text;
    let mut count = 0;
    while let Some((block, behind)) = pem::first(rest) {
        if block.kind != "CERTIFICATE" {
            let kind = block.kind;
            return Err(format!(
                "only CERTIFICATE PEM blocks are allowed, found {kind:?}"
            ));
        }
        if block.has_headers {
            return Err("no PEM block headers are permitted".into());
        }
        certificate::check_all(&block.data)?;
        count += 1;
        rest = behind;
    }
    if count == 0 && !text.is_empty() {
        return Err("must contain at least one CERTIFICATE PEM block".into());
    }
    Ok(())
}
