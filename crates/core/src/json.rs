//! A cursor that skips JSON values without parsing them.
//!
//! Skipping takes a few instructions per string and brace, so the helpers are always inlined: calls would cost a
//! quarter of the time.

use std::fmt;

use memchr::memchr2;

/// The deepest nesting of a value; [`Nest`] has one bit per level.
const DEEPEST: u32 = 128;

/// How many 8-byte words of a string are searched before `memchr2` is called.
const WORDS: usize = 4;

/// A position in a JSON text that moves from value to value.
///
/// The cursor finds the boundaries of members, items and values without parsing them, at a fraction of a parser's cost.
/// It follows the grammar of JSON with three exceptions: strings may contain any bytes except quotes (UTF-8 and control
/// characters are not checked), `\u` may be followed by any four hexadecimal digits, and values may be nested at most
/// 128 levels deep. After [`UnexpectedJson`], use a parser to find out what is wrong, if anything.
///
/// ```
/// use lariat_core::JsonCursor;
///
/// let mut cursor = JsonCursor::new(br#"{"kind": "List", "items": [1, {"a": []}]}"#);
/// cursor.enter_object()?;
/// assert_eq!(cursor.next_member()?, Some(&b"kind"[..]));
/// assert_eq!(cursor.skip_value()?, br#""List""#);
/// assert_eq!(cursor.next_member()?, Some(&b"items"[..]));
/// assert_eq!(cursor.skip_value()?, br#"[1, {"a": []}]"#);
/// assert_eq!(cursor.next_member()?, None);
/// cursor.end()?;
/// # Ok::<(), lariat_core::UnexpectedJson>(())
/// ```
#[derive(Clone)]
pub struct JsonCursor<'a> {
    /// The text.
    json: &'a [u8],
    /// The position: the number of bytes before the cursor.
    at: usize,
    /// Whether an object or list was entered and none of its elements has been read.
    is_fresh: bool,
}

/// A JSON text that a [`JsonCursor`] cannot follow; a parser may.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("unexpected JSON")]
pub struct UnexpectedJson;

impl<'a> JsonCursor<'a> {
    /// Creates a cursor at the beginning of a text.
    #[must_use]
    pub fn new(json: &'a [u8]) -> Self {
        Self {
            json,
            at: 0,
            is_fresh: false,
        }
    }

    /// Returns the number of bytes before the cursor.
    #[must_use]
    pub fn position(&self) -> usize {
        self.at
    }

    /// Returns the bytes between a position and the cursor.
    pub(crate) fn since(&self, start: usize) -> &'a [u8] {
        &self.json[start..self.at]
    }

    /// Enters an object, so that [`next_member`](Self::next_member) visits its members.
    ///
    /// # Errors
    ///
    /// If there is no object at the cursor.
    pub fn enter_object(&mut self) -> Result<(), UnexpectedJson> {
        // The first member is not preceded by a comma.
        self.is_fresh = true;
        self.take(b'{')
    }

    /// Enters a list, so that [`next_item`](Self::next_item) visits its items.
    ///
    /// # Errors
    ///
    /// If there is no list at the cursor.
    ///
    /// # Examples
    ///
    /// ```
    /// use lariat_core::JsonCursor;
    ///
    /// let mut cursor = JsonCursor::new(b"[1, 2]");
    /// cursor.enter_list()?;
    /// let mut items = Vec::new();
    /// while cursor.next_item()? {
    ///     items.push(cursor.skip_value()?);
    /// }
    /// assert_eq!(items, [b"1", b"2"]);
    /// # Ok::<(), lariat_core::UnexpectedJson>(())
    /// ```
    pub fn enter_list(&mut self) -> Result<(), UnexpectedJson> {
        self.is_fresh = true;
        self.take(b'[')
    }

    /// Moves to the value of the next member and returns the member's name.
    ///
    /// The name is returned as written, including escapes. At the end of the object, the cursor moves past it, and the
    /// result is `None`. The value must be skipped or entered before the next call.
    ///
    /// # Errors
    ///
    /// If there is neither a member nor the end of an object at the cursor.
    pub fn next_member(&mut self) -> Result<Option<&'a [u8]>, UnexpectedJson> {
        if !self.moves_on(b'}')? {
            return Ok(None);
        }
        self.name().map(Some)
    }

    /// Moves to the next item; at the end, leaves the list and returns `false`.
    ///
    /// # Errors
    ///
    /// If there is neither an item nor the end of a list at the cursor.
    pub fn next_item(&mut self) -> Result<bool, UnexpectedJson> {
        self.moves_on(b']')
    }

    /// Skips a value of any type and returns its bytes.
    ///
    /// # Errors
    ///
    /// If there is no value at the cursor, or if it is nested too deeply.
    pub fn skip_value(&mut self) -> Result<&'a [u8], UnexpectedJson> {
        self.peek()?;
        let start = self.at;
        // Iterative, not recursive: input from a server must not exhaust the stack.
        let mut nest = Nest::default();
        loop {
            match self.peek()? {
                b'"' => self.string().map(drop)?,
                opening @ (b'{' | b'[') => {
                    self.at += 1;
                    let is_object = opening == b'{';
                    // In ASCII, `]` is `[` plus two and `}` is `{` plus two. Empty objects and lists are handled here,
                    // so that a comma or an end always follows a value below.
                    if self.peek()? != opening + 2 {
                        nest.open(is_object)?;
                        if is_object {
                            self.name()?;
                        }
                        continue;
                    }
                    self.at += 1;
                }
                _ => self.scalar()?,
            }
            if self.close(&mut nest)? {
                return Ok(&self.json[start..self.at]);
            }
        }
    }

    /// Checks that only white space follows.
    ///
    /// # Errors
    ///
    /// If anything else follows.
    pub fn end(&mut self) -> Result<(), UnexpectedJson> {
        self.peek().map_or(Ok(()), |_| Err(UnexpectedJson))
    }

    /// Closes the objects and lists that end after a value.
    ///
    /// Returns `true` if the outermost one has ended. Otherwise the cursor is at the next value.
    #[inline(always)]
    fn close(&mut self, nest: &mut Nest) -> Result<bool, UnexpectedJson> {
        loop {
            if nest.depth == 0 {
                return Ok(true);
            }
            let next = self.peek()?;
            self.at += 1;
            match (next, nest.is_object()) {
                (b',', false) => return Ok(false),
                (b',', true) => return self.name().map(|_| false),
                (b'}', true) | (b']', false) => nest.close(),
                _ => return Err(UnexpectedJson),
            }
        }
    }

    /// Moves past the comma before a member or item, or past the end.
    fn moves_on(&mut self, end: u8) -> Result<bool, UnexpectedJson> {
        let is_fresh = std::mem::take(&mut self.is_fresh);
        let next = self.peek()?;
        if next == end {
            self.at += 1;
            return Ok(false);
        }
        if !is_fresh {
            self.take(b',')?;
        }
        Ok(true)
    }

    /// Skips the name of a member and the colon after it; returns the name.
    #[inline(always)]
    fn name(&mut self) -> Result<&'a [u8], UnexpectedJson> {
        if self.peek()? != b'"' {
            return Err(UnexpectedJson);
        }
        let name = self.string()?;
        self.take(b':')?;
        Ok(name)
    }

    /// Skips the string at the cursor and returns the bytes between its quotes.
    #[inline(always)]
    fn string(&mut self) -> Result<&'a [u8], UnexpectedJson> {
        let start = self.at + 1;
        self.at = start;
        loop {
            let stop = find_stop(self.json, self.at)?;
            self.at = stop + 1;
            if self.json[stop] == b'"' {
                return Ok(&self.json[start..stop]);
            }
            self.escape()?;
        }
    }

    /// Skips an escape; the cursor is after its backslash.
    fn escape(&mut self) -> Result<(), UnexpectedJson> {
        let length = match self.json.get(self.at).ok_or(UnexpectedJson)? {
            b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => 1,
            b'u' => 5,
            _ => return Err(UnexpectedJson),
        };
        let digits = self.json.get(self.at + 1..self.at + length);
        if !digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit)) {
            return Err(UnexpectedJson);
        }
        self.at += length;
        Ok(())
    }

    /// Skips a number, `true`, `false` or `null`.
    fn scalar(&mut self) -> Result<(), UnexpectedJson> {
        let rest = &self.json[self.at..];
        // The whole word is taken, so that `truex` or `1a` is not read as a value and the rest of another.
        let is_part =
            |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'+' | b'.');
        let length = rest.iter().position(|byte| !is_part(byte));
        let text = &rest[..length.unwrap_or(rest.len())];
        self.at += text.len();
        match text {
            b"true" | b"false" | b"null" => Ok(()),
            text if is_number(text) => Ok(()),
            _ => Err(UnexpectedJson),
        }
    }

    /// Skips white space and the given byte.
    #[inline(always)]
    fn take(&mut self, byte: u8) -> Result<(), UnexpectedJson> {
        if self.peek()? != byte {
            return Err(UnexpectedJson);
        }
        self.at += 1;
        Ok(())
    }

    /// Skips white space and returns the byte at the cursor.
    #[inline(always)]
    pub(crate) fn peek(&mut self) -> Result<u8, UnexpectedJson> {
        match self.json.get(self.at) {
            // One comparison: no byte up to the space can begin a token, and the slow path tells which of them are
            // white space.
            Some(byte) if *byte > b' ' => Ok(*byte),
            _ => self.peek_behind_white_space(),
        }
    }

    /// The slow path of [`peek`](Self::peek).
    ///
    /// API servers write no white space, so this stays out of the inlined code.
    #[cold]
    #[inline(never)]
    fn peek_behind_white_space(&mut self) -> Result<u8, UnexpectedJson> {
        let rest = self.json.get(self.at..).ok_or(UnexpectedJson)?;
        let is_white = |byte: &u8| matches!(byte, b' ' | b'\n' | b'\r' | b'\t');
        let white = rest
            .iter()
            .position(|byte| !is_white(byte))
            .ok_or(UnexpectedJson)?;
        self.at += white;
        Ok(rest[white])
    }
}

/// Returns the position of the next quote or backslash.
///
/// Most strings are short. For these, a few words are searched here, which is faster than a call of `memchr2`.
#[inline(always)]
fn find_stop(json: &[u8], mut at: usize) -> Result<usize, UnexpectedJson> {
    for _ in 0..WORDS {
        let Some(word) = json.get(at..).and_then(|rest| rest.first_chunk::<8>()) else {
            break;
        };
        let word = u64::from_le_bytes(*word);
        let stops = bytes_that_are(word, b'"') | bytes_that_are(word, b'\\');
        if stops != 0 {
            return Ok(at + (stops.trailing_zeros() / 8) as usize);
        }
        at += 8;
    }
    let rest = json.get(at..).ok_or(UnexpectedJson)?;
    memchr2(b'"', b'\\', rest)
        .map(|found| at + found)
        .ok_or(UnexpectedJson)
}

/// Sets the highest bit of each byte of a word that equals `wanted`.
///
/// Only the lowest set bit is reliable: a subtraction may borrow from higher bytes.
#[inline(always)]
fn bytes_that_are(word: u64, wanted: u8) -> u64 {
    const ONES: u64 = u64::from_le_bytes([1; 8]);
    // Equal bytes become zero, and a zero byte borrows when one is subtracted from it.
    let differences = word ^ (ONES * u64::from(wanted));
    differences.wrapping_sub(ONES) & !differences & (ONES << 7)
}

/// Returns whether a text is a JSON number, such as `-12.5e+7`.
fn is_number(text: &[u8]) -> bool {
    let text = text.strip_prefix(b"-").unwrap_or(text);
    let (whole, text) = digits(text);
    let is_whole = !whole.is_empty() && (whole.len() == 1 || whole[0] != b'0');
    // Where a part is missing, the whole number stands in for it, which is not empty either.
    let (fraction, text) = match text.strip_prefix(b".") {
        Some(text) => digits(text),
        None => (whole, text),
    };
    let (exponent, text) = match text {
        [b'e' | b'E', b'-' | b'+', text @ ..] | [b'e' | b'E', text @ ..] => digits(text),
        text => (whole, text),
    };
    is_whole && !fraction.is_empty() && !exponent.is_empty() && text.is_empty()
}

/// Splits a text after its leading digits.
fn digits(text: &[u8]) -> (&[u8], &[u8]) {
    let end = text.iter().position(|byte| !byte.is_ascii_digit());
    text.split_at(end.unwrap_or(text.len()))
}

/// The objects and lists around a position.
#[derive(Default)]
struct Nest {
    /// One bit per level, the innermost lowest; set if the level is an object.
    objects: u128,
    /// The number of levels.
    depth: u32,
}

impl Nest {
    /// Enters an object or a list.
    fn open(&mut self, is_object: bool) -> Result<(), UnexpectedJson> {
        if self.depth == DEEPEST {
            return Err(UnexpectedJson);
        }
        self.depth += 1;
        self.objects = self.objects << 1 | u128::from(is_object);
        Ok(())
    }

    /// Leaves the innermost object or list.
    fn close(&mut self) {
        self.depth -= 1;
        self.objects >>= 1;
    }

    /// Returns whether the innermost level is an object.
    fn is_object(&self) -> bool {
        self.objects & 1 == 1
    }
}

impl fmt::Debug for JsonCursor<'_> {
    /// Prints the position; the text stays out of logs.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JsonCursor")
            .field("at", &self.at)
            .field("of", &self.json.len())
            .finish()
    }
}
