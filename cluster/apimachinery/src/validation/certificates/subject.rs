//! The subject of a request for a certificate.
//!
//! Source: `parseName` and `parseASN1String` of Go's `crypto/x509`.

use super::der::{OBJECT_IDENTIFIER, Reader, SEQUENCE, SET, Tag};

/// The attribute for an organization: 2.5.4.10.
const ORGANIZATION: [u8; 3] = [0x55, 4, 10];

/// The types of texts.
const UTF_8: u32 = 12;
const NUMERIC: u32 = 18;
const PRINTABLE: u32 = 19;
const T61: u32 = 20;
const IA5: u32 = 22;
const BMP: u32 = 30;

/// Returns the organizations that a subject names.
pub(super) fn organizations(subject: &[u8]) -> Result<Vec<String>, String> {
    let mut organizations = Vec::new();
    let mut outer = Reader::new(subject);
    let mut sets = Reader::new(content(&mut outer, SEQUENCE).map_err(invalid)?);
    while !sets.is_done() {
        let mut attributes = Reader::new(content(&mut sets, SET).map_err(invalid)?);
        while !attributes.is_done() {
            let attribute = content(&mut attributes, SEQUENCE);
            let mut members = Reader::new(attribute.map_err(|()| detailed("invalid attribute"))?);
            let kind = content(&mut members, OBJECT_IDENTIFIER);
            let kind = kind.map_err(|()| detailed("invalid attribute type"))?;
            let value = members
                .any()
                .map_err(|_| "invalid ASN.1 element")
                .and_then(|value| text(value.tag, value.content));
            let value =
                value.map_err(|reason| detailed(&format!("invalid attribute value: {reason}")))?;
            organizations.extend(value.filter(|_| kind == ORGANIZATION));
        }
    }
    Ok(organizations)
}

fn content<'a>(reader: &mut Reader<'a>, tag: Tag) -> Result<&'a [u8], ()> {
    let element = reader.any().map_err(drop)?;
    (element.tag == tag).then_some(element.content).ok_or(())
}

fn invalid((): ()) -> String {
    "x509: invalid RDNSequence".to_owned()
}

fn detailed(reason: &str) -> String {
    format!("x509: invalid RDNSequence: {reason}")
}

/// Reads a text; a value that is none is nothing.
fn text(tag: Tag, content: &[u8]) -> Result<Option<String>, &'static str> {
    let ascii = |is_valid: fn(&u8) -> bool, error| {
        let latin = || content.iter().copied().map(char::from).collect();
        content
            .iter()
            .all(is_valid)
            .then(latin)
            .map(Some)
            .ok_or(error)
    };
    match tag.simple() {
        Some(UTF_8) => {
            let text = std::str::from_utf8(content).map_err(|_| "invalid UTF-8 string")?;
            Ok(Some(text.to_owned()))
        }
        Some(PRINTABLE) => ascii(is_printable, "invalid PrintableString"),
        Some(IA5) => ascii(u8::is_ascii, "invalid IA5String"),
        Some(NUMERIC) => ascii(
            |byte| byte.is_ascii_digit() || *byte == b' ',
            "invalid NumericString",
        ),
        // Each byte is a character of Latin-1, as Go takes it.
        Some(T61) => ascii(|_| true, ""),
        Some(BMP) if !content.len().is_multiple_of(2) => Err("invalid BMPString"),
        Some(BMP) => {
            let units = content.chunks_exact(2);
            let units: Vec<u16> = units
                .map(|pair| u16::from_be_bytes([pair[0], pair[1]]))
                .collect();
            Ok(Some(String::from_utf16_lossy(&units)))
        }
        _ => Ok(None),
    }
}

/// Returns whether a PrintableString may have a byte; Go also takes the asterisk and the ampersand.
fn is_printable(byte: &u8) -> bool {
    byte.is_ascii_alphanumeric() || b" '()+,-./:=?*&".contains(byte)
}
