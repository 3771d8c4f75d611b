//! IP addresses and networks.
//!
//! Source: `k8s.io/apimachinery/pkg/util/validation/ip.go`.

use std::net::{IpAddr, Ipv4Addr};

use super::causes::Causes;
use super::field::Field;

/// Reads an address as Go's older parser does: numbers may begin with zeros.
pub(crate) fn parse(text: &str) -> Option<IpAddr> {
    if text.contains(':') {
        // IPv6 never had the lenient form.
        return text.parse().ok();
    }
    let mut bytes = [0; 4];
    let mut parts = text.split('.');
    for byte in &mut bytes {
        let part = parts.next()?;
        // Any number of zeros in front is fine; the bound only keeps the text short.
        let fits = (1..=64).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_digit());
        *byte = fits.then(|| part.parse::<u16>().ok())??.try_into().ok()?;
    }
    parts
        .next()
        .is_none()
        .then(|| IpAddr::V4(Ipv4Addr::from(bytes)))
}

/// Reads a network: an address, and how many of its bits count.
pub(crate) fn parse_network(text: &str) -> Option<(IpAddr, u8)> {
    let (address, length) = text.split_once('/')?;
    let address = parse(address)?;
    let most = if address.is_ipv4() { 32 } else { 128 };
    let digits = !length.is_empty() && length.bytes().all(|byte| byte.is_ascii_digit());
    let length = digits.then(|| length.parse::<u8>().ok())??;
    (length <= most).then_some((address, length))
}

/// Returns the address with the bits behind a length cleared.
pub(crate) fn masked(address: IpAddr, length: u8) -> IpAddr {
    let length = u32::from(length);
    match address {
        IpAddr::V4(v4) => {
            // A length of zero would shift by all bits, which overflows.
            let mask = u32::MAX.checked_shl(32 - length).unwrap_or(0);
            IpAddr::V4((u32::from(v4) & mask).into())
        }
        IpAddr::V6(v6) => {
            let mask = u128::MAX.checked_shl(128 - length).unwrap_or(0);
            IpAddr::V6((u128::from(v6) & mask).into())
        }
    }
}

/// Returns the number of a network, by which Go compares it.
// `To4`: an IPv4 address within IPv6 counts as what it is.
pub(crate) fn network_number(address: IpAddr, length: u8) -> IpAddr {
    masked(address, length).to_canonical()
}

pub(crate) fn is_mapped(address: IpAddr) -> bool {
    matches!(address, IpAddr::V6(v6) if v6.to_ipv4_mapped().is_some())
}

/// Checks an address with the lenient rules for members of old APIs.
pub(crate) fn check_ip(at: &Field<'_>, causes: &mut Causes) -> bool {
    let text = at.text();
    // `IsValidIPForLegacyField`: one cause, the first that applies.
    let Some(address) = parse(text) else {
        let detail = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";
        causes.invalid_as(at, text, detail);
        return false;
    };
    if text.parse::<IpAddr>().is_err() {
        causes.invalid_as(at, text, "must not have leading 0s");
        return false;
    }
    if is_mapped(address) {
        let detail = "must not be an IPv4-mapped IPv6 address";
        causes.invalid_as(at, text, detail);
        return false;
    }
    true
}

/// Checks an address that must also be written in its one form.
pub(crate) fn check_canonical_ip(at: &Field<'_>, causes: &mut Causes) {
    if !check_ip(at, causes) {
        return;
    }
    let text = at.text();
    // `IsValidIP`: the only difference to members of old APIs is the form.
    let canonical = parse(text).map(|address| address.to_string());
    if canonical.as_deref() != Some(text) {
        let canonical = canonical.unwrap_or_default();
        let detail = format!("must be in canonical form ({canonical:?})");
        causes.invalid_as(at, text, &detail);
    }
}

/// Checks a CIDR with the lenient rules for members of old APIs.
pub(crate) fn check_cidr(at: &Field<'_>, causes: &mut Causes) -> bool {
    let text = at.text();
    let Some((address, length)) = parse_network(text) else {
        let detail = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)";
        causes.invalid_as(at, text, detail);
        return false;
    };
    let (written, digits) = text.split_once('/').unwrap_or((text, ""));
    let detail = if written.parse::<IpAddr>().is_err() || digits != length.to_string() {
        // Also the length, which Go's parser accepts as `/08`.
        "must not have leading 0s in IP or prefix length"
    } else if is_mapped(address) {
        "must not have an IPv4-mapped IPv6 address"
    } else if masked(address, length) != address {
        "must not have bits set beyond the prefix length"
    } else {
        return true;
    };
    causes.invalid_as(at, text, detail);
    false
}

/// Checks a network that must also be written in its one form.
pub(crate) fn check_canonical_cidr(at: &Field<'_>, causes: &mut Causes) {
    if !check_cidr(at, causes) {
        return;
    }
    let network = parse_network(at.text());
    let canonical = network.map(|(address, length)| format!("{address}/{length}"));
    if let Some(canonical) = canonical.filter(|canonical| canonical != at.text()) {
        let detail = format!("must be in canonical form ({canonical:?})");
        causes.invalid_as(at, at.text(), &detail);
    }
}

/// Checks an address with a prefix length, which must be in canonical form.
pub(crate) fn check_interface_address(at: &Field<'_>, causes: &mut Causes) {
    let Some((address, length)) = parse_network(at.text()) else {
        // `IsValidInterfaceAddress`: bits behind the prefix are the address of the interface, so they may be set.
        let detail = "must be a valid address in CIDR form, (e.g. 10.9.8.7/24 or 2001:db8::1/64)";
        causes.invalid_as(at, at.text(), detail);
        return;
    };
    let inner = match address {
        IpAddr::V6(v6) => v6.to_ipv4_mapped(),
        IpAddr::V4(_) => None,
    };
    // Go writes a mapped address as the IPv4 address that it is.
    let canonical = match inner {
        Some(v4) => format!("{v4}/{}", length.saturating_sub(96)),
        None => format!("{address}/{length}"),
    };
    if canonical != at.text() {
        let detail = format!("must be in canonical form ({canonical:?})");
        causes.invalid_as(at, at.text(), &detail);
    }
}

/// Checks that of several addresses or networks there is at most one a family.
///
/// `shown` is the list as messages show it.
pub(crate) fn check_families(
    at: &Field<'_>,
    (texts, shown): (&[&str], &str),
    what: &str,
    causes: &mut Causes,
) {
    if texts.len() < 2 {
        return;
    }
    let parsed: Vec<Option<IpAddr>> = texts
        .iter()
        .map(|text| match text.split_once('/') {
            Some(_) => parse_network(text).map(|(address, _)| address),
            None => parse(text),
        })
        .collect();
    let broken = parsed.iter().position(Option::is_none);
    if let Some(broken) = broken {
        let found = texts[broken];
        let failed = "dual stack with error:invalid";
        causes.internal(
            at,
            &match what {
                // `ParseCIDRs` shows the network that could not be read, of which there is none.
                "CIDR" => format!(
                    "invalid PodCIDRs. failed to check with {failed} {what}[{broken}]: <nil> (invalid CIDR address: {found})"
                ),
                _ => format!("failed to check for {failed} {what}[{broken}]: {found}"),
            },
        );
    }
    // A broken one is reported twice, as in Go, where the check of families fails on it.
    let fours = parsed.iter().flatten().filter(|address| address.is_ipv4());
    let dual = broken.is_none() && texts.len() == 2 && fours.count() == 1;
    if !dual {
        let detail = format!("may specify no more than one {what} for each IP family");
        causes.invalid_struct(at, shown, &detail);
    }
}

/// Checks an address that others are to reach.
pub(crate) fn check_endpoint(at: &Field<'_>, causes: &mut Causes) {
    let text = at.text();
    let Some(address) = parse(text) else {
        causes.invalid_as(at, text, "must be a valid IP address");
        return;
    };
    let (link_local, link_multicast) = match address {
        // `ValidateEndpointIP`; all that applies is reported.
        IpAddr::V4(v4) => (v4.is_link_local(), v4.octets()[..3] == [224, 0, 0]),
        IpAddr::V6(v6) => (
            v6.segments()[0] & 0xffc0 == 0xfe80,
            v6.segments()[0] & 0xff0f == 0xff02,
        ),
    };
    if address.is_unspecified() {
        causes.invalid_as(at, text, &format!("may not be unspecified ({text})"));
    }
    if address.is_loopback() {
        let detail = "may not be in the loopback range (127.0.0.0/8, ::1/128)";
        causes.invalid_as(at, text, detail);
    }
    if link_local {
        let detail = "may not be in the link-local range (169.254.0.0/16, fe80::/10)";
        causes.invalid_as(at, text, detail);
    }
    if link_multicast {
        let detail = "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)";
        causes.invalid_as(at, text, detail);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::cause::StatusCause;

    fn check(run: impl Fn(&Field<'_>, &mut Causes), text: &str, expected: Option<&str>) {
        let object = json!({"ip": text});
        let mut causes = Causes::default();
        run(&Field::of(object.as_object().unwrap(), "ip"), &mut causes);
        let found: Vec<String> = causes.into_list().iter().map(StatusCause::text).collect();
        let expected: Vec<String> = expected
            .map(|rule| format!("ip: Invalid value: {text:?}: {rule}"))
            .into_iter()
            .collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn addresses_are_checked_by_more_than_their_parser() {
        let ip = |at: &Field<'_>, causes: &mut Causes| _ = check_ip(at, causes);
        let wrong = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";
        for (text, expected) in [
            ("10.0.0.1", None),
            ("2001:db8::1", None),
            ("10.0.0", Some(wrong)),
            ("10.0.0.256", Some(wrong)),
            ("example.com", Some(wrong)),
            ("", Some(wrong)),
            ("10.0.0.01", Some("must not have leading 0s")),
            (
                "::ffff:1.2.3.4",
                Some("must not be an IPv4-mapped IPv6 address"),
            ),
        ] {
            check(ip, text, expected);
        }
        let canonical = "must be in canonical form (\"2001:db8::1\")";
        check(check_canonical_ip, "2001:DB8:0::1", Some(canonical));
    }

    #[test]
    fn networks_have_no_bits_beyond_their_length() {
        let cidr = |at: &Field<'_>, causes: &mut Causes| _ = check_cidr(at, causes);
        let wrong = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)";
        for (text, expected) in [
            ("10.0.0.0/8", None),
            ("::/0", None),
            ("0.0.0.0/0", None),
            ("10.0.0.0", Some(wrong)),
            ("10.0.0.0/33", Some(wrong)),
            (
                "10.0.0.0/08",
                Some("must not have leading 0s in IP or prefix length"),
            ),
            (
                "10.0.0.1/8",
                Some("must not have bits set beyond the prefix length"),
            ),
        ] {
            check(cidr, text, expected);
        }
    }
}
