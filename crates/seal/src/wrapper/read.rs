//! Reads keys from files, environment variables and bytes.

use std::env;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use zeroize::Zeroizing;

use crate::error::KeyError;
use crate::secret::{KEY, Secret};

/// The maximum size of a key file, in bytes.
const LARGEST_FILE: u64 = 64 * 1024;

/// Base64 with or without padding.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// The users, besides root, that may read a key file.
#[derive(Clone, Copy)]
pub(super) enum Readers {
    /// The owner only.
    Owner,
    /// The owner and the group.
    Group,
}

/// Reads keys from a file with safe permissions.
pub(super) fn file(path: &Path, readers: Readers) -> Result<Vec<Secret>, KeyError> {
    let unreadable = |source: io::Error| KeyError::Unreadable {
        path: path.to_owned(),
        source,
    };
    let file = File::open(path).map_err(unreadable)?;
    // The metadata of the open file, so that the file that is checked is the one that is read.
    let metadata = file.metadata().map_err(unreadable)?;
    check_mode(path, &metadata, readers)?;
    // Allocated in its final size, because a vector that grows leaves copies of keys behind.
    let mut contents = Zeroizing::new(Vec::with_capacity(LARGEST_FILE as usize + 1));
    let mut file = file.take(LARGEST_FILE + 1);
    file.read_to_end(&mut contents).map_err(unreadable)?;
    let keys = match contents.len() {
        KEY => raw(&contents).map(|key| vec![key]),
        length if length as u64 > LARGEST_FILE => Err("it is too large for a key file"),
        _ => lines(&contents),
    };
    keys_of(keys, || format!("the key file {}", path.display()))
}

/// Checks the permissions of a key file.
#[cfg(unix)]
fn check_mode(path: &Path, metadata: &std::fs::Metadata, readers: Readers) -> Result<(), KeyError> {
    use std::os::unix::fs::PermissionsExt;
    let mode = metadata.permissions().mode() & 0o7777;
    let (refused, advice) = match readers {
        Readers::Owner => (0o077, "only its owner may have permissions; chmod 600 it"),
        Readers::Group => (
            0o037,
            "its group may read it and others nothing; chmod 640 it",
        ),
    };
    match mode & refused {
        0 => Ok(()),
        _ => Err(KeyError::Exposed {
            path: path.to_owned(),
            mode,
            advice,
        }),
    }
}

/// Other systems than Unix have no such permissions.
#[cfg(not(unix))]
fn check_mode(_: &Path, _: &std::fs::Metadata, _: Readers) -> Result<(), KeyError> {
    Ok(())
}

/// Reads keys from an environment variable.
pub(super) fn variable(name: &str) -> Result<Vec<Secret>, KeyError> {
    // The error of `env::var` would contain the value if it is not UTF-8.
    let value = Zeroizing::new(env::var(name).map_err(|_| KeyError::NoVariable(name.to_owned()))?);
    keys_of(lines(value.as_bytes()), || {
        format!("the environment variable {name}")
    })
}

/// Reads one key from its bytes.
pub(super) fn bytes(key: &[u8]) -> Result<Vec<Secret>, KeyError> {
    keys_of(checked(key).map(|key| vec![key]), || "the input".to_owned())
}

/// Adds the origin of the keys to an error.
fn keys_of(
    keys: Result<Vec<Secret>, &'static str>,
    origin: impl FnOnce() -> String,
) -> Result<Vec<Secret>, KeyError> {
    keys.map_err(|problem| KeyError::Invalid {
        origin: origin(),
        problem,
    })
}

/// Reads a file that is as long as one key in bytes.
fn raw(key: &[u8]) -> Result<Secret, &'static str> {
    // Printable text of that length is probably 16 bytes in hexadecimal digits: half a key.
    if key.iter().all(|byte| (b' '..=b'~').contains(byte)) {
        Err("32 characters of text are too few; give 64 hexadecimal digits or base64")
    } else {
        checked(key)
    }
}

/// Reads one or more keys from text.
fn lines(text: &[u8]) -> Result<Vec<Secret>, &'static str> {
    let words = text.split(u8::is_ascii_whitespace);
    let keys: Vec<Secret> = words
        .filter(|word| !word.is_empty())
        .map(word)
        .collect::<Result<_, _>>()?;
    if keys.is_empty() {
        Err("it is empty")
    } else {
        Ok(keys)
    }
}

/// Reads a key in hexadecimal digits or base64.
fn word(word: &[u8]) -> Result<Secret, &'static str> {
    const NEITHER: &str =
        "a key is 64 hexadecimal digits, the base64 of 32 bytes or, alone in a file, 32 bytes";
    // Two bytes more, because base64 text of 44 characters may decode to 33 bytes. The length is checked below.
    let mut key = Zeroizing::new([0; KEY + 2]);
    let length = if word.len() == 2 * KEY {
        hexadecimal(word, &mut key[..KEY]).ok_or(NEITHER)?
    } else {
        BASE64
            .decode_slice(word, key.as_mut())
            .map_err(|_| NEITHER)?
    };
    match length {
        KEY => checked(&key[..KEY]),
        _ => Err(NEITHER),
    }
}

/// Decodes hexadecimal digits.
fn hexadecimal(digits: &[u8], bytes: &mut [u8]) -> Option<usize> {
    let value = |digit: u8| char::from(digit).to_digit(16);
    for (byte, digits) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = u8::try_from(value(digits[0])? << 4 | value(digits[1])?).ok()?;
    }
    Some(bytes.len())
}

/// Copies a key and checks that it is not obviously a placeholder.
fn checked(key: &[u8]) -> Result<Secret, &'static str> {
    let secret = Secret::copied(key).ok_or("a key has 32 bytes")?;
    // Templates and examples contain such values in place of a key.
    if key.iter().all(|byte| *byte == key[0]) {
        Err("all of its bytes are equal; a key must be random")
    } else {
        Ok(secret)
    }
}
