//! The extensions that a request for a certificate asks for.
//!
//! Source: `parseCSRExtensions` and `parseSANExtension` of Go's `crypto/x509`.

use std::collections::HashSet;
use std::net::Ipv6Addr;

use super::der::{self, BOOLEAN, OBJECT_IDENTIFIER, OCTET_STRING, Reader, SEQUENCE, SET};
use crate::go_text::quoted;
use crate::go_url;

/// The attribute with the extensions: 1.2.840.113549.1.9.14.
const EXTENSION_REQUEST: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 9, 14];
/// The extension for subject alternative names: 2.5.29.17.
const ALTERNATIVE_NAMES: &[u8] = &[0x55, 0x1d, 17];

/// The tags of names, within the context-specific class.
const EMAIL: u32 = 1;
const DNS: u32 = 2;
const URI: u32 = 6;
const IP: u32 = 7;

/// Checks the extensions among the attributes of a request.
///
/// `attributes` are those of the request, one after the other.
pub(super) fn check(attributes: &[u8]) -> Result<(), String> {
    let mut attributes = Reader::new(attributes);
    let (mut seen, mut names) = (HashSet::new(), Vec::new());
    while !attributes.is_done() {
        let attribute = attributes.any()?;
        let Some(requested) = requested(attribute.whole) else {
            continue;
        };
        for extension in extensions(requested)? {
            if !seen.insert(extension.kind) {
                let reason = "x509: certificate request contains duplicate requested extensions";
                return Err(reason.to_owned());
            }
            if extension.kind == ALTERNATIVE_NAMES {
                names.push(extension.value);
            }
        }
    }
    names.into_iter().try_for_each(check_names)
}

/// Returns the extensions of an attribute, if it can be read and is about them.
fn requested(attribute: &[u8]) -> Option<&[u8]> {
    let mut outer = Reader::new(attribute);
    let mut members = Reader::new(outer.element_of(SEQUENCE, "").ok()?.content);
    let kind = members.element_of(OBJECT_IDENTIFIER, "").ok()?;
    der::check_identifier(kind.content).ok()?;
    let mut values = Reader::new(members.element_of(SET, "").ok()?.content);
    let first = values.any().ok()?;
    while !values.is_done() {
        // A value that cannot be read makes Go drop the attribute.
        values.any().ok()?;
    }
    (kind.content == EXTENSION_REQUEST).then_some(first.whole)
}

struct Extension<'a> {
    kind: &'a [u8],
    value: &'a [u8],
}

fn extensions(requested: &[u8]) -> Result<Vec<Extension<'_>>, String> {
    let list = Reader::new(requested).element_of(SEQUENCE, "")?;
    // Go counts the items before it reads them.
    let mut items = Reader::new(list.content);
    while !items.is_done() {
        items.skip_item(SEQUENCE)?;
    }
    let mut items = Reader::new(list.content);
    let mut extensions = Vec::new();
    while !items.is_done() {
        let item = items.element_of(SEQUENCE, "Extension")?;
        extensions.push(extension(item.content)?);
    }
    Ok(extensions)
}

fn extension(content: &[u8]) -> Result<Extension<'_>, String> {
    let mut members = Reader::new(content);
    let kind = members.element_of(OBJECT_IDENTIFIER, "ObjectIdentifier")?;
    der::check_identifier(kind.content)?;
    if let Some(critical) = members.optional(BOOLEAN)? {
        // `parseBool`.
        if !matches!(critical.content, [0 | 0xff]) {
            return Err(der::syntax("invalid boolean"));
        }
    }
    let value = members.element_of(OCTET_STRING, "")?;
    Ok(Extension {
        kind: kind.content,
        value: value.content,
    })
}

/// Checks the content of the extension for subject alternative names.
pub(super) fn check_names(names: &[u8]) -> Result<(), String> {
    let invalid = |what: &str| format!("x509: invalid subject alternative {what}");
    let list = Reader::new(names).any().ok();
    let list = list.filter(|list| list.tag == SEQUENCE);
    let mut names = Reader::new(list.ok_or_else(|| invalid("names"))?.content);
    while !names.is_done() {
        let name = names.any().ok();
        // `cryptobyte` knows no long tags.
        let name = name.filter(|name| name.tag.is_short());
        let name = name.ok_or_else(|| invalid("name"))?;
        check_name(name.tag.in_context(), name.content)?;
    }
    Ok(())
}

fn check_name(tag: Option<u32>, name: &[u8]) -> Result<(), String> {
    let text = |what: &str| match std::str::from_utf8(name) {
        Ok(text) if text.is_ascii() => Ok(text),
        _ => Err(format!("x509: SAN {what} is malformed")),
    };
    match tag {
        Some(EMAIL) => text("rfc822Name").map(drop),
        Some(DNS) => text("dNSName").map(drop),
        Some(URI) => check_uri(text("uniformResourceIdentifier")?),
        Some(IP) => check_address(name),
        _ => Ok(()),
    }
}

fn check_uri(text: &str) -> Result<(), String> {
    let failed = |reason: &str| format!("x509: cannot parse URI {}: {reason}", quoted(text));
    let url = go_url::parse(text).map_err(|reason| failed(&reason))?;
    if is_domain(url.host) {
        Ok(())
    } else {
        Err(failed("invalid domain"))
    }
}

/// Returns whether a text may be a domain; nothing may, too.
// `domainNameValid`.
fn is_domain(text: &str) -> bool {
    let is_label =
        |label: &str| !label.is_empty() && label.bytes().all(|byte| byte.is_ascii_graphic());
    text.is_empty() || text.split('.').all(is_label)
}

fn check_address(address: &[u8]) -> Result<(), String> {
    if let Ok(octets) = <[u8; 16]>::try_from(address) {
        if Ipv6Addr::from(octets).to_ipv4_mapped().is_some() {
            return Err("x509: SAN iPAddress contains IPv4-mapped IPv6 address".to_owned());
        }
        return Ok(());
    }
    match address.len() {
        4 => Ok(()),
        length => Err(format!("x509: cannot parse IP address of length {length}")),
    }
}
