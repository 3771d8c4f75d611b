//! FNV-1a: a hash that is the same in every process and in every release.

/// The hash of no bytes, to begin [`fnv1a`] with.
pub const FNV_OFFSET: u64 = 0xcbf2_9ce4_8422_2325;

/// Continues an FNV-1a hash of 64 bits with some bytes.
///
/// Use it where a hash is stored or shown: the standard library's hashes may change. It does not resist attacks.
///
/// ```
/// use lariat_core::{FNV_OFFSET, fnv1a};
///
/// assert_eq!(fnv1a(FNV_OFFSET, b"foobar"), 0x8594_4171_f739_67e8);
/// assert_eq!(fnv1a(fnv1a(FNV_OFFSET, b"foo"), b"bar"), fnv1a(FNV_OFFSET, b"foobar"));
/// ```
#[must_use]
pub fn fnv1a(hash: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(hash, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// Returns the FNV-1a hash of 32 bits.
///
/// ```
/// assert_eq!(lariat_core::fnv1a_32(b"foobar"), 0xbf9c_f968);
/// ```
#[must_use]
pub fn fnv1a_32(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0x811c_9dc5, |hash, byte| {
        (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193)
    })
}
