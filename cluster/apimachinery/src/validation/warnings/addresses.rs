//! Addresses and networks in forms that parsers read differently.

use std::net::IpAddr;

use super::collected::Warnings;
use crate::validation::addresses::{is_mapped, masked, parse, parse_network};
use crate::validation::field::Field;

// `GetWarningsForIP`. Two parsers are compared: Go's old one accepts leading zeros (`010.0.0.1`), netip's does not.
pub(super) fn check_ip(at: &Field<'_>, warnings: &mut Warnings) {
    let text = at.text();
    // Validation has refused what the old parser cannot read; empty and `None` get here as well.
    let Some(address) = parse(text) else {
        return;
    };
    // `::ffff:10.0.0.1` is read by both, but as IPv4 by one and as IPv6 by the other.
    if text.parse::<IpAddr>().is_err() || is_mapped(address) {
        let standard = address.to_canonical().to_string();
        let what = format!("non-standard IP address {text:?} is invalid: use {standard:?}");
        warnings.add_at(at, what);
    } else if address.is_ipv6() && address.to_string() != text {
        let standard = address.to_string();
        let what =
            format!("IPv6 address {text:?} should be in RFC 5952 canonical format ({standard:?})");
        warnings.add_at(at, what);
    }
}

// `GetWarningsForCIDR`, which can give two warnings: bits after the prefix, and leading zeros.
pub(super) fn check_cidr(at: &Field<'_>, warnings: &mut Warnings) {
    let text = at.text();
    let Some((address, length)) = parse_network(text) else {
        return;
    };
    let network = masked(address, length);
    let (whole, standard) = (
        // The single address is offered with the full length, in case the prefix was a mistake.
        if address.is_ipv4() { 32 } else { 128 },
        format!("{network}/{length}"),
    );
    let is_ambiguous = network != address;
    if is_ambiguous {
        let single = format!("{address}/{whole}");
        let what = format!(
            "CIDR value {text:?} is ambiguous in this context (should be {standard:?} or {single:?}?)"
        );
        warnings.add_at(at, what);
    }
    let (written, digits) = text.split_once('/').unwrap_or((text, ""));
    // netip refuses a length with leading zeros (`/08`), which the old parser accepts.
    let is_strict = written.parse::<IpAddr>().is_ok() && digits == length.to_string();
    if !is_strict || is_mapped(address) {
        let what = format!("non-standard CIDR value {text:?} is invalid: use {standard:?}");
        warnings.add_at(at, what);
    // The form is remarked on only if nothing else is: the other warnings suggest it already.
    } else if !is_ambiguous && address.is_ipv6() && standard != text {
        let what = format!(
            "IPv6 CIDR value {text:?} should be in RFC 5952 canonical format ({standard:?})"
        );
        warnings.add_at(at, what);
    }
}
