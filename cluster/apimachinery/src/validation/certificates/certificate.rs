//! Parses issued certificates.
//!
//! Source: `ParseCertificates` of Go's `crypto/x509`. Of extensions, those for uses, names, keys and authorities are
//! read; what others contain is not.

use std::collections::HashSet;

use super::der::{
    self, BIT_STRING, BOOLEAN, CONTEXT_0, INTEGER, OBJECT_IDENTIFIER, OCTET_STRING, Reader,
    SEQUENCE, Tag,
};
use super::keys::Identifier;
use super::{extensions, subject, times};

/// The part of the identifiers of extensions that most have in common: 2.5.29.
const COMMON: [u8; 2] = [0x55, 0x1d];

/// Checks certificates that follow one another.
pub(super) fn check_all(data: &[u8]) -> Result<(), String> {
    let mut certificates = Reader::new(data);
    if certificates.is_done() {
        return Err("found CERTIFICATE PEM block containing 0 certificates".to_owned());
    }
    while !certificates.is_done() {
        check(take(&mut certificates, SEQUENCE, "malformed certificate")?)?;
    }
    Ok(())
}

fn check(certificate: &[u8]) -> Result<(), String> {
    let mut members = Reader::new(certificate);
    let signed = take(&mut members, SEQUENCE, "malformed tbs certificate")?;
    let mut signed = Reader::new(signed);
    let version = version(&mut signed)?;
    let serial = take(&mut signed, INTEGER, "malformed serial number")?;
    if !is_integer(serial) {
        return refuse("malformed serial number");
    }
    if serial[0] & 0x80 != 0 {
        return refuse("negative serial number");
    }
    let inner = "malformed signature algorithm identifier";
    let inner = take(&mut signed, SEQUENCE, inner)?;
    let outer = take(&mut members, SEQUENCE, "malformed algorithm identifier")?;
    if inner != outer {
        return refuse("inner and outer signature algorithm identifiers don't match");
    }
    identifier(inner)?;
    check_name(&mut signed)?;
    times::check(take(&mut signed, SEQUENCE, "malformed validity")?)?;
    check_name(&mut signed)?;
    check_key(take(&mut signed, SEQUENCE, "malformed spki")?)?;
    check_rest(&mut signed, version)?;
    let signature = take(&mut members, BIT_STRING, "malformed signature")?;
    der::bits(signature).or_else(|_| refuse("malformed signature"))?;
    Ok(())
}

/// Returns the version of a certificate, from 1.
fn version(signed: &mut Reader<'_>) -> Result<u8, String> {
    let malformed = || "x509: malformed version".to_owned();
    let explicit = signed.optional(CONTEXT_0).map_err(|_| malformed())?;
    let Some(explicit) = explicit else {
        return Ok(1);
    };
    let mut inner = Reader::new(explicit.content);
    let number = take(&mut inner, INTEGER, "malformed version")?;
    let is_number = is_integer(number) && number.len() <= 8 && number[0] & 0x80 == 0;
    match number {
        _ if !is_number || !inner.is_done() => Err(malformed()),
        [number @ 0..=2] => Ok(number + 1),
        _ => refuse("invalid version"),
    }
}

/// Reads the name of an issuer or a subject.
fn check_name(signed: &mut Reader<'_>) -> Result<(), String> {
    // Of both, Go calls the issuer malformed.
    let name = signed.element_of(SEQUENCE, "");
    let name = name.or_else(|_| refuse("malformed issuer"))?;
    subject::organizations(name.whole).map(drop)
}

fn check_key(information: &[u8]) -> Result<(), String> {
    let mut members = Reader::new(information);
    let algorithm = "malformed public key algorithm identifier";
    let algorithm = identifier(take(&mut members, SEQUENCE, algorithm)?)?;
    let bits = take(&mut members, BIT_STRING, "malformed subjectPublicKey")?;
    let bits = der::bits(bits).or_else(|_| refuse("malformed subjectPublicKey"))?;
    algorithm.key(bits)?;
    Ok(())
}

// `parseAI`.
fn identifier(content: &[u8]) -> Result<Identifier<'_>, String> {
    let mut members = Reader::new(content);
    let name = take(&mut members, OBJECT_IDENTIFIER, "malformed OID")?;
    der::check_identifier(name).or_else(|_| refuse("malformed OID"))?;
    let parameters = if members.is_done() {
        &[]
    } else {
        let parameters = members.any();
        parameters
            .or_else(|_| refuse("malformed parameters"))?
            .whole
    };
    Ok(Identifier { name, parameters })
}

/// Reads the members of later versions: identifiers of issuer and subject, and extensions.
fn check_rest(signed: &mut Reader<'_>, version: u8) -> Result<(), String> {
    let identifiers = [(1, "issuerUniqueID"), (2, "subjectUniqueID")];
    for (number, name) in identifiers.into_iter().filter(|_| version > 1) {
        let found = signed.optional(Tag::context(number, false));
        found.or_else(|_| refuse(&format!("malformed {name}")))?;
    }
    if version < 3 {
        return Ok(());
    }
    let found = signed.optional(Tag::context(3, true));
    let Some(found) = found.or_else(|_| refuse("malformed extensions"))? else {
        return Ok(());
    };
    let mut list = Reader::new(found.content);
    let mut list = Reader::new(take(&mut list, SEQUENCE, "malformed extensions")?);
    let (mut seen, mut all) = (HashSet::new(), Vec::new());
    while !list.is_done() {
        let extension = read(take(&mut list, SEQUENCE, "malformed extension")?)?;
        if !seen.insert(extension.kind) {
            let kind = der::identifier(extension.kind);
            let reason = format!("certificate contains duplicate extension with OID {kind:?}");
            return refuse(&reason);
        }
        all.push(extension);
    }
    all.iter().try_for_each(check_extension)
}

struct Extension<'a> {
    kind: &'a [u8],
    is_critical: bool,
    value: &'a [u8],
}

// `parseExtension`.
fn read(content: &[u8]) -> Result<Extension<'_>, String> {
    let mut members = Reader::new(content);
    let what = "malformed extension OID field";
    let kind = take(&mut members, OBJECT_IDENTIFIER, what)?;
    der::check_identifier(kind).or_else(|_| refuse(what))?;
    let what = "malformed extension critical field";
    let is_critical = flag(&mut members, what)?;
    let value = take(
        &mut members,
        OCTET_STRING,
        "malformed extension value field",
    )?;
    Ok(Extension {
        kind,
        is_critical,
        value,
    })
}

/// Reads a boolean, false if it is missing.
fn flag(members: &mut Reader<'_>, what: &str) -> Result<bool, String> {
    let flag = members.optional(BOOLEAN).or_else(|_| refuse(what))?;
    match flag.map(|flag| flag.content) {
        None | Some([0]) => Ok(false),
        Some([0xff]) => Ok(true),
        Some(_) => refuse(what),
    }
}

// `processExtensions`.
fn check_extension(extension: &Extension<'_>) -> Result<(), String> {
    let value = extension.value;
    let mut reader = Reader::new(value);
    let [first, second, number] = extension.kind else {
        return Ok(());
    };
    if [*first, *second] != COMMON {
        return Ok(());
    }
    let check_mark = |what: &str| {
        if extension.is_critical {
            return refuse(&format!(
                "{what} key identifier incorrectly marked critical"
            ));
        }
        Ok(())
    };
    match number {
        14 => {
            check_mark("subject")?;
            take(&mut reader, OCTET_STRING, "invalid subject key identifier").map(drop)
        }
        15 => {
            let bits = take(&mut reader, BIT_STRING, "invalid key usage")?;
            der::bits(bits)
                .map(drop)
                .or_else(|_| refuse("invalid key usage"))
        }
        17 => extensions::check_names(value),
        19 => check_constraints(&mut reader),
        35 => {
            check_mark("authority")?;
            let what = "invalid authority key identifier";
            let mut inner = Reader::new(take(&mut reader, SEQUENCE, what)?);
            let key = inner.optional(Tag::context(0, false));
            key.map(drop).or_else(|_| refuse(what))
        }
        37 => {
            let what = "invalid extended key usages";
            let mut uses = Reader::new(take(&mut reader, SEQUENCE, what)?);
            while !uses.is_done() {
                let each = take(&mut uses, OBJECT_IDENTIFIER, what)?;
                der::check_identifier(each).or_else(|_| refuse(what))?;
            }
            Ok(())
        }
        _ => Ok(()),
    }
}

fn check_constraints(reader: &mut Reader<'_>) -> Result<(), String> {
    let what = "invalid basic constraints";
    let mut members = Reader::new(take(reader, SEQUENCE, what)?);
    flag(&mut members, what)?;
    let length = members.optional(INTEGER).or_else(|_| refuse(what))?;
    match length.map(|length| length.content) {
        Some(length) if !is_integer(length) || length.len() > 8 || length[0] & 0x80 != 0 => {
            refuse(what)
        }
        _ => Ok(()),
    }
}

/// Returns whether a content is an integer in its shortest form.
fn is_integer(content: &[u8]) -> bool {
    match content {
        [] => false,
        [0, next, ..] => next & 0x80 != 0,
        [0xff, next, ..] => next & 0x80 == 0,
        _ => true,
    }
}

/// Reads an element of one type; otherwise the certificate is refused for a reason.
fn take<'a>(reader: &mut Reader<'a>, tag: Tag, otherwise: &str) -> Result<&'a [u8], String> {
    let element = reader.element_of(tag, "");
    element
        .map(|element| element.content)
        .or_else(|_| refuse(otherwise))
}

fn refuse<T>(reason: &str) -> Result<T, String> {
    Err(format!("x509: {reason}"))
}
