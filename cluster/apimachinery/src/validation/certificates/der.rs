//! Reading DER, with the errors of Go.
//!
//! It reads one element after the other, as Go does: what is behind the last wanted member of a sequence is not looked
//! at. A reader of whole types would refuse that.
//!
//! Source: `parseTagAndLength` and `parseField` of Go's `encoding/asn1`.

/// A tag, as the header of an element has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Tag {
    class: u8,
    number: u32,
    constructed: bool,
}

/// An element: its tag and its content.
#[derive(Debug, Clone, Copy)]
pub(super) struct Element<'a> {
    pub(super) tag: Tag,
    pub(super) content: &'a [u8],
    /// The content with the header.
    pub(super) whole: &'a [u8],
}

/// Reads elements that follow one another.
#[derive(Debug, Clone)]
pub(super) struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

pub(super) const BOOLEAN: Tag = Tag::universal(1, false);
pub(super) const INTEGER: Tag = Tag::universal(2, false);
pub(super) const BIT_STRING: Tag = Tag::universal(3, false);
pub(super) const OCTET_STRING: Tag = Tag::universal(4, false);
pub(super) const OBJECT_IDENTIFIER: Tag = Tag::universal(6, false);
pub(super) const UTC_TIME: Tag = Tag::universal(23, false);
pub(super) const GENERALIZED_TIME: Tag = Tag::universal(24, false);
pub(super) const SEQUENCE: Tag = Tag::universal(16, true);
pub(super) const SET: Tag = Tag::universal(17, true);
/// `[0]`, with other elements in it.
pub(super) const CONTEXT_0: Tag = Tag::context(0, true);

impl Tag {
    pub(super) const fn universal(number: u32, constructed: bool) -> Self {
        Self {
            class: 0,
            number,
            constructed,
        }
    }

    /// Returns a context-specific tag.
    pub(super) const fn context(number: u32, constructed: bool) -> Self {
        Self {
            class: 2,
            number,
            constructed,
        }
    }

    /// Returns whether the number of a tag fits its first byte.
    pub(super) fn is_short(self) -> bool {
        self.number < 0x1f
    }

    /// Returns the number of a context-specific tag.
    pub(super) fn in_context(self) -> Option<u32> {
        (self.class == 2 && !self.constructed).then_some(self.number)
    }

    /// Returns the number of a simple type, such as a text.
    pub(super) fn simple(self) -> Option<u32> {
        (self.class == 0 && !self.constructed).then_some(self.number)
    }
}

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    pub(super) fn is_done(&self) -> bool {
        self.at >= self.bytes.len()
    }

    /// Reads an element of any type.
    pub(super) fn any(&mut self) -> Result<Element<'a>, String> {
        self.element(|_, _| Ok(()))
    }

    /// Reads an element of one type, which errors call by a name of Go.
    pub(super) fn element_of(&mut self, wanted: Tag, name: &str) -> Result<Element<'a>, String> {
        self.element(|header, at| {
            if header.tag == wanted {
                return Ok(());
            }
            let Header { tag, length } = header;
            Err(structure(&format!(
                "tags don't match ({} vs {{class:{} tag:{} length:{length} isCompound:{}}}) {{optional:false \
                 explicit:false application:false private:false defaultValue:<nil> tag:<nil> stringType:0 timeType:0 \
                 set:false omitEmpty:false}} {name} @{at}",
                wanted.number, tag.class, tag.number, tag.constructed
            )))
        })
    }

    /// Passes over an item of a list whose items have one type.
    // `parseSequenceOf`.
    pub(super) fn skip_item(&mut self, wanted: Tag) -> Result<(), String> {
        let item = self.element(|header, _| {
            let is_wanted = header.tag == wanted;
            is_wanted
                .then_some(())
                .ok_or_else(|| structure("sequence tag mismatch"))
        });
        let truncated = syntax("data truncated");
        item.map(drop).map_err(|error| {
            if error == truncated {
                syntax("truncated sequence")
            } else {
                error
            }
        })
    }

    /// Reads an element of one type, if it is there.
    pub(super) fn optional(&mut self, wanted: Tag) -> Result<Option<Element<'a>>, String> {
        if self.is_done() {
            return Ok(None);
        }
        let mut ahead = self.clone();
        let header = ahead.header()?;
        if header.tag != wanted {
            return Ok(None);
        }
        self.any().map(Some)
    }

    fn element(
        &mut self,
        check: impl FnOnce(&Header, usize) -> Result<(), String>,
    ) -> Result<Element<'a>, String> {
        if self.is_done() {
            return Err(syntax("sequence truncated"));
        }
        let begin = self.at;
        let header = self.header()?;
        check(&header, self.at)?;
        let end = self.at + header.length;
        let (Some(content), Some(whole)) =
            (self.bytes.get(self.at..end), self.bytes.get(begin..end))
        else {
            return Err(syntax("data truncated"));
        };
        self.at = end;
        Ok(Element {
            tag: header.tag,
            content,
            whole,
        })
    }

    fn byte(&mut self) -> Result<u8, String> {
        let byte = self.bytes.get(self.at);
        self.at += 1;
        byte.copied()
            .ok_or_else(|| syntax("truncated tag or length"))
    }

    fn header(&mut self) -> Result<Header, String> {
        let first = self.byte()?;
        let mut tag = Tag {
            class: first >> 6,
            number: u32::from(first & 0x1f),
            constructed: first & 0x20 != 0,
        };
        if tag.number == 0x1f {
            tag.number = self.base_128()?;
            if tag.number < 0x1f {
                return Err(syntax("non-minimal tag"));
            }
        }
        let length = self.length()?;
        Ok(Header { tag, length })
    }

    /// Reads the number of a tag that does not fit the first byte.
    fn base_128(&mut self) -> Result<u32, String> {
        let mut number: u32 = 0;
        for place in 0..5 {
            let Some(&byte) = self.bytes.get(self.at) else {
                return Err(syntax("truncated base 128 integer"));
            };
            self.at += 1;
            if place == 0 && byte == 0x80 {
                return Err(syntax("integer is not minimally encoded"));
            }
            if number >= 1 << 24 {
                break;
            }
            number = number << 7 | u32::from(byte & 0x7f);
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(structure("base 128 integer too large"))
    }

    fn length(&mut self) -> Result<usize, String> {
        let first = self.byte()?;
        if first & 0x80 == 0 {
            return Ok(usize::from(first));
        }
        let count = first & 0x7f;
        if count == 0 {
            return Err(syntax("indefinite length found (not DER)"));
        }
        let mut length = 0;
        for _ in 0..count {
            let byte = self.byte()?;
            if length >= 1 << 23 {
                return Err(structure("length too large"));
            }
            length = length << 8 | usize::from(byte);
            if length == 0 {
                return Err(structure("superfluous leading zeros in length"));
            }
        }
        if length < 0x80 {
            return Err(structure("non-minimal length"));
        }
        Ok(length)
    }
}

/// The header of an element, before its content.
struct Header {
    tag: Tag,
    length: usize,
}

/// Checks that a content is an integer that fits 64 bits.
pub(super) fn check_integer(content: &[u8]) -> Result<(), String> {
    match content {
        [] => Err(structure("empty integer")),
        [0, next, ..] if next & 0x80 == 0 => Err(structure("integer not minimally-encoded")),
        [0xff, next, ..] if next & 0x80 != 0 => Err(structure("integer not minimally-encoded")),
        _ if content.len() > 8 => Err(structure("integer too large")),
        _ => Ok(()),
    }
}

/// Checks that a content is an object identifier.
pub(super) fn check_identifier(content: &[u8]) -> Result<(), String> {
    let Some(last) = content.last() else {
        return Err(syntax("zero length OBJECT IDENTIFIER"));
    };
    let begins = |at: usize| at == 0 || content[at - 1] & 0x80 == 0;
    if (0..content.len()).any(|at| content[at] == 0x80 && begins(at)) {
        return Err(syntax("integer is not minimally encoded"));
    }
    if last & 0x80 != 0 {
        return Err(syntax("truncated base 128 integer"));
    }
    Ok(())
}

/// Writes an object identifier with dots.
pub(super) fn identifier(content: &[u8]) -> String {
    let mut numbers: Vec<u64> = Vec::new();
    let mut number: u64 = 0;
    for byte in content {
        number = number.wrapping_shl(7) | u64::from(byte & 0x7f);
        if byte & 0x80 == 0 {
            if numbers.is_empty() {
                // The first number stands for two.
                let first = (number / 40).min(2);
                numbers.push(first);
                number -= 40 * first;
            }
            numbers.push(number);
            number = 0;
        }
    }
    let texts: Vec<String> = numbers.iter().map(u64::to_string).collect();
    texts.join(".")
}

/// Returns the bytes of a content that is a bit string.
pub(super) fn bits(content: &[u8]) -> Result<&[u8], String> {
    let Some((&padding, bytes)) = content.split_first() else {
        return Err(syntax("zero length BIT STRING"));
    };
    let last = bytes.last().copied();
    let is_padded = match last {
        None => padding == 0,
        Some(last) => padding <= 7 && u32::from(last) & ((1 << padding) - 1) == 0,
    };
    if is_padded {
        Ok(bytes)
    } else {
        Err(syntax("invalid padding bits in BIT STRING"))
    }
}

pub(super) fn syntax(what: &str) -> String {
    format!("asn1: syntax error: {what}")
}

fn structure(what: &str) -> String {
    format!("asn1: structure error: {what}")
}
